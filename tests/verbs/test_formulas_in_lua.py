"""The mathematics in Lua equals that in Python, on inputs that nobody picked."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlane import Settings, formulas
from fairlane.keys import ABNORMAL, TABLE, Keys
from fairlane.scripts import definitions
from support.servers import Server

CALMLY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
WAITS = st.integers(0, 3_000_000)
NOW_MS = 1_750_000_000_000


def evaluate(server: Server, expression: str, chosen: Settings | None = None) -> Any:
    """Return the value of a Lua expression that may use every shared function."""
    constants = (chosen or Settings()).constants()
    table = ", ".join(f"{name} = {value!r}" for name, value in constants.items())
    keys = Keys().lua(row.lua for row in (*TABLE, ABNORMAL))
    source = "\n".join(
        [
            "#!lua",
            keys,
            f"local C, call, now = {{ {table} }}, redis.call, {NOW_MS}",
            "local function fail(code, detail) return redis.error_reply(code .. detail) end",
            *needed(expression),
            f"return cjson.encode({expression})",
        ]
    )
    return json.loads(server.client.eval(source, 0))


def needed(expression: str) -> list[str]:
    """Return the shared definitions that an expression needs: all would be too many for one."""
    wanted, blocks = set(re.findall(r"\w+", expression)), []
    for name, block in reversed(definitions().items()):
        if name in wanted:
            blocks.append(block)
            wanted.update(re.findall(r"\w+", block))
    return blocks[::-1]


@CALMLY
@given(n=st.integers(1, 80), base=st.integers(1, 10**6), most=st.integers(1, 10**9))
def test_backoff(server: Server, n: int, base: int, most: int) -> None:
    expected = formulas.backoff_ms(n, base_ms=base, max_ms=most)
    assert evaluate(server, f"{{ backoff_ms({n}, {base}, {most}) }}") == [expected]


@CALMLY
@given(
    pending=st.integers(0, 60),
    count=st.integers(0, 60),
    in_all=st.integers(1, 50),
    per_mac=st.integers(1, 50),
)
def test_fair_admission(
    server: Server, pending: int, count: int, in_all: int, per_mac: int
) -> None:
    chosen = Settings(max_total_pending=in_all, max_per_mac_pending=per_mac)
    server.empty()
    levels = f"{{ pending = {pending}, sited = 0, crossed = 0 }}"
    call = f"refusal({levels}, {{ meta = 'm', whole = {{}} }}, 'default', {count})"
    refused = evaluate(server, f"{{ {call} }}", chosen)
    limit = formulas.device_limit(pending, max_total_pending=in_all, max_per_mac_pending=per_mac)
    if pending >= in_all:
        assert refused == ["global_full", pending, in_all, low_mark(in_all)]
    elif count >= limit:
        assert refused == ["device_full", count, limit, low_mark(limit)]
    else:
        assert not refused


def low_mark(limit: int) -> int:
    """Return to what a count must fall: nine tenths, and below the limit."""
    return min(limit - 1, limit * 9 // 10)


@CALMLY
@given(pending=st.integers(0, 60), over=st.integers(0, 3), in_all=st.integers(1, 50))
def test_system_admission(server: Server, pending: int, over: int, in_all: int) -> None:
    server.empty()
    chosen = Settings(admission="system", max_total_pending=in_all)
    call = f"refusal({{ pending = {pending}, crossed = {over} }}, {{}}, 'default', 0)"
    refused = evaluate(server, f"{{ {call} }}", chosen)
    assert bool(refused) == formulas.overloaded(pending, over, max_total_pending=in_all)


@CALMLY
@given(st.lists(st.tuples(WAITS, st.integers(0, 5)), min_size=2, max_size=12))
def test_the_order_of_aging_scores(server: Server, devices: list[tuple[int, int]]) -> None:
    """A higher S is served before a lower one; among equal ones the least recent turn."""
    calls = ", ".join(
        f"string.format('%.0f', aging_score({NOW_MS - waited}, {turn}, {arrival}))"
        for arrival, (waited, turn) in enumerate(devices)
    )
    scores = [int(score) for score in evaluate(server, f"{{ {calls} }}")]
    ranked = sorted(range(len(devices)), key=lambda at: -scores[at])
    for first, second in pairwise(ranked):
        (waited, turn), (other_waited, other_turn) = devices[first], devices[second]
        assert formulas.score(waited) >= formulas.score(other_waited)
        if waited >= formulas.AGING_MAX_WAIT_MS and other_waited >= formulas.AGING_MAX_WAIT_MS:
            assert turn <= other_turn
