"""The mutation check deletes every write that the Lua files have: it knows their commands."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlane.scripts import PRELUDE, SHARED, definitions, read, verbs

READS = {
    *("DUMP", "EXISTS", "GET", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HRANDFIELD"),
    *("LINDEX", "LLEN", "LPOS", "LRANGE", "PTTL", "SCARD", "SISMEMBER", "SRANDMEMBER", "TIME"),
    *("TYPE", "XRANGE", "XREVRANGE", "ZCARD", "ZCOUNT", "ZRANGE", "ZREVRANGE", "ZREVRANGEBYSCORE"),
    *("ZREVRANK", "ZSCORE", "INFO", "MEMORY"),
}


TOOL = Path(__file__).parents[2] / "tools" / "lua_writes.py"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give the module of the tool, which is in no package."""
    spec = importlib.util.spec_from_file_location("lua_writes", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lua_writes", module)
    spec.loader.exec_module(module)
    return module


def test_every_command_reads_or_is_known_to_write(tool: Any) -> None:
    used = {
        command
        for name in (PRELUDE, *SHARED, *verbs())
        for call in re.findall(r"\b(?:p?call)\(([^\n]*)", read(name))
        for command in re.findall(r"'([A-Z]{3,})'", call.split(",", 1)[0])
    }
    assert used - READS <= tool.WRITES
    assert not READS & tool.WRITES


def test_a_mutant_lacks_one_write_and_is_named_by_it(tool: Any) -> None:
    text = "call('SET', KEY, 1)\nif call('ZREM', SET, id) == 1 then\n  forget(id)\nend\n"
    found = list(tool.mutants("verb", text, frozenset({"forget"})))
    assert [mutant.write for mutant in found] == [
        "call('SET', KEY, 1)",
        "call('ZREM', SET, id)",
        "forget(id)",
    ]
    assert [mutant.line for mutant in found] == [1, 2, 3]
    assert found[1].text.startswith("call('SET', KEY, 1)\nif (call('ZSCORE', SET, id) and 1 or 0)")
    assert {"emit", "move", "save"} <= tool.writers(definitions())
