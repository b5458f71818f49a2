"""How a library is put together: the verbs, what they call, and nothing else."""

from __future__ import annotations

import hashlib
import inspect
import re
from typing import Any

import pytest

from fairlane import Settings, scripts
from fairlane.keys import Keys
from fairlane.scripts import SHARED, Library, definitions, library_of, load, read
from fairlane.verbs import Join, Overload, Reconcile, Verb, every_verb

AGREED = (Settings(), Settings().digest)

LIBRARIES = {
    name: library_of(verb.SCRIPT, Keys(), AGREED)
    for name, verb in (("verbs", Overload), ("setup", Join), ("repair", Reconcile))
}

each_library = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)


def verbs_of(library: Library) -> list[type[Verb[Any]]]:
    """Return the verbs that are in a library."""
    return [verb for verb in every_verb() if library_of(verb.SCRIPT, Keys(), AGREED) is library]


def code(text: str) -> str:
    """Return Lua without comments and without fields, whose names are nobody's."""
    return re.sub(r"--[^\n]*|\.\w+|^local DIGEST[^\n]*", "", text, flags=re.MULTILINE)


@each_library
def test_it_is_named_by_the_hash_of_its_content(library: Library) -> None:
    shebang, _, text = library.source.decode().partition("\n")
    content = text.replace(library.name, "LIBRARY").encode()
    assert library.name == scripts.PREFIX + hashlib.sha256(content).hexdigest()[:16]
    assert shebang == f"#!lua name={library.name}"


@each_library
def test_it_has_a_function_for_each_verb(library: Library) -> None:
    source = library.source.decode()
    named = set(re.findall(r"function_name = '(\w+)'", source))
    kinds = verbs_of(library)
    assert named == {library.function(verb.SCRIPT) for verb in kinds}
    for verb in kinds:
        literal = re.sub(r"\bC\.(\w+)", lambda found: repr(Settings().constants()[found[1]]),
                         read(verb.SCRIPT))  # fmt: skip
        assert f"begin(arguments)\n{literal}end) }})" in source


@each_library
def test_it_brings_what_is_called_and_no_more(library: Library) -> None:
    source = code(library.source.decode())
    for name in definitions():
        uses = len(re.findall(rf"\b{name}\b", source))
        assert uses != 1, f"{name} is defined and not called"


@each_library
def test_everything_is_defined_before_it_is_used(library: Library) -> None:
    source = code(library.source.decode())
    for name in definitions():
        if first := re.search(rf"\b{name}\b", source):
            assert re.search(rf"local (function )?{name}$", source[: first.end()])


@each_library
def test_it_has_no_more_names_than_lua_allows(library: Library) -> None:
    """A function has at most 200 local variables, and a library is one: split it before that."""
    shared = library.source.decode().partition("redis.register_function(")[0]
    told = re.findall(r"^local (?:function )?([\w, ]+)", shared, re.MULTILINE)
    assert 20 < len([name for names in told for name in names.split(",")]) <= 195


def test_nothing_outlives_a_call() -> None:
    """A shared value that is written to would be another one in the next call."""
    text = "\n".join([*definitions().values(), *(read(verb.SCRIPT) for verb in every_verb())])
    values = [name for name, block in definitions().items() if f"local {name} =" in block]
    assert values
    for name in values:
        assert not re.findall(rf"^ *{name}(\[.*\])? = ", text, re.MULTILINE), name


def test_every_verb_has_a_file_and_every_file_is_a_verb() -> None:
    assert list(scripts.verbs()) == sorted(verb.SCRIPT for verb in every_verb())


def test_every_shared_definition_is_found() -> None:
    for shared in SHARED:
        starts = re.findall(r"^local (?:function )?(\w+)", read(shared), re.MULTILINE)
        assert starts == [name for name in definitions() if name in starts]


def test_another_setting_is_another_library_and_so_is_another_digest() -> None:
    (settings, digest), other = AGREED, Settings(batch_size=7)
    names = {load(Keys(), each).name for each in (AGREED, (other, digest), (settings, ""), None)}
    assert len(names) == 4
    assert len({library.name for library in LIBRARIES.values()}) == 3


def test_another_namespace_is_another_library() -> None:
    one, other = load(Keys(), AGREED), load(Keys("other"), AGREED)
    assert one.name != other.name
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
    assert load(Keys(), AGREED) is load(Keys(), AGREED)
    assert inspect.unwrap(load) is not load
