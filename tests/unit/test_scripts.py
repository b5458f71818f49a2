"""How a script is put together: its own file, what it calls, and nothing else."""

from __future__ import annotations

import hashlib
import inspect
import re
from typing import Any

import pytest

from fairlane import Settings, scripts
from fairlane.keys import Keys
from fairlane.scripts import SHARED, Script, definitions, load, read
from fairlane.verbs import Join, Migrate, Verb, every_verb

AGREED = (Settings(), Settings().digest)

each_verb = pytest.mark.parametrize("verb", every_verb(), ids=lambda verb: verb.SCRIPT)


def code(text: str) -> str:
    """Return Lua without comments and without fields, whose names are nobody's."""
    return re.sub(r"--[^\n]*|\.\w+|^local DIGEST[^\n]*", "", text, flags=re.MULTILINE)


def loaded(verb: type[Verb[Any]], settings: Settings | None = None) -> Script:
    if verb in (Join, Migrate):
        return load(verb.SCRIPT, Keys(), None)
    chosen = settings or Settings()
    return load(verb.SCRIPT, Keys(), (chosen, chosen.digest))


@each_verb
def test_it_is_called_by_the_hash_of_its_content(verb: type[Verb[Any]]) -> None:
    script = loaded(verb)
    assert script.sha == hashlib.sha1(script.source, usedforsecurity=False).hexdigest()
    assert script.source.decode().startswith("#!lua")
    literal = re.sub(r"\bC\.(\w+)", lambda found: repr(Settings().constants()[found[1]]),
                     read(verb.SCRIPT))  # fmt: skip
    assert script.source.decode().endswith(literal)


@each_verb
def test_it_brings_what_it_calls_and_no_more(verb: type[Verb[Any]]) -> None:
    source = code(loaded(verb).source.decode())
    for name in definitions():
        uses = len(re.findall(rf"\b{name}\b", source))
        assert uses != 1, f"{name} is defined and not called"


@each_verb
def test_everything_is_defined_before_it_is_used(verb: type[Verb[Any]]) -> None:
    source = code(loaded(verb).source.decode())
    for name in definitions():
        if first := re.search(rf"\b{name}\b", source):
            assert re.search(rf"local (function )?{name}$", source[: first.end()])


def test_every_shared_definition_is_found() -> None:
    for shared in SHARED:
        starts = re.findall(r"^local (?:function )?(\w+)", read(shared), re.MULTILINE)
        assert starts == [name for name in definitions() if name in starts]


def test_another_setting_is_another_script_only_where_it_is_used() -> None:
    before, after = Settings(), Settings(batch_size=7)
    changed = {
        verb.SCRIPT
        for verb in every_verb()
        if verb not in (Join, Migrate)
        and load(verb.SCRIPT, Keys(), (before, "")) != load(verb.SCRIPT, Keys(), (after, ""))
    }
    assert "claim" in changed
    assert "enqueue" not in changed


def test_another_namespace_is_another_script() -> None:
    one = load("enqueue", Keys(), AGREED)
    other = load("enqueue", Keys("other"), AGREED)
    assert one.sha != other.sha
    assert b"sensitive:" not in other.source


def test_every_setting_that_lua_names_exists() -> None:
    constants = Settings().constants()
    text = "\n".join([*definitions().values(), *(read(verb.SCRIPT) for verb in every_verb())])
    named = set(re.findall(r"\bC\.(\w+)", text))
    assert named <= set(constants)


def test_nobody_asks_for_a_random_number_or_the_time_but_the_prelude() -> None:
    text = "\n".join([*definitions().values(), *(read(verb.SCRIPT) for verb in every_verb())])
    assert "math.random" not in text
    assert not re.search(r"'TIME'|\bos\b", code(text))
    assert "'TIME'" in read(scripts.PRELUDE)


def test_it_is_put_together_once() -> None:
    assert load("enqueue", Keys(), AGREED) is load("enqueue", Keys(), AGREED)
    assert inspect.unwrap(load) is not load
