"""One verb has one name and one sentence, in its class, its Lua file and its test.

The rule: what two places must agree on is compared here, so that adding a verb is a list of steps
that a failing test names: sentence, class, Lua file, test.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlane
from fairlane import errors, verbs
from fairlane.errors import Conflict, FairlaneError
from fairlane.http.app import ROUTES
from fairlane.keys import ABNORMAL, TABLE
from fairlane.model import TERMINAL, TRANSITIONS, TaskState
from fairlane.scripts import PRELUDE, SHARED, called, definitions, read
from fairlane.verbs import Verb, every_verb

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "fairlane"
LUA = SOURCE / "lua"
BANNED = ("manager", "helper", "utils", "common", "base", "handle_", "process_")
#: Names that the requirement document fixes.
FIXED = ("process_mac_sensitive_tasks",)
#: Routes that run no verb of their own.
NO_VERB = {"dead_causes", "events", "livez", "metrics", "read_file", "readyz", "settings"} | {
    f"{what}_session" for what in ("begin", "inspect", "end")
}
#: What the prelude can answer to any script.
OF_EVERY_SCRIPT = {"CONFIG_CHANGED", "CLOCK_REFUSED", "FOREIGN_KEY"}

each_verb = pytest.mark.parametrize("verb", every_verb(), ids=lambda verb: verb.SCRIPT)


def header(verb: type[Verb[Any]]) -> dict[str, str]:
    """Return the sentence and the labelled lines that open a verb's file, each as one line."""
    comment: list[str] = []
    for line in read(verb.SCRIPT).splitlines():
        if not line.startswith("--"):
            break
        comment.append(line.removeprefix("--").removeprefix(" "))
    found = {"Sentence": comment[0]}
    label = ""
    for line in comment[1:]:
        if opened := re.match(r"(Returns|Errors|Twice|Flags) +(.+)", line):
            label = opened[1]
            found[label] = opened[2]
        elif label and line.strip():
            found[label] += " " + line.strip()
    return found


def lua_files() -> list[Path]:
    return sorted(LUA.glob("*.lua"))


def python_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@each_verb
def test_one_sentence(verb: type[Verb[Any]]) -> None:
    sentence = (verb.__doc__ or "").splitlines()[0]
    assert sentence == header(verb)["Sentence"], "the class and the Lua file differ"
    test = ROOT / "tests" / "verbs" / f"test_{verb.SCRIPT}.py"
    assert test.exists(), f"{verb.__name__} has no test"
    told = ast.get_docstring(ast.parse(test.read_text(encoding="utf-8"))) or ""
    assert told.splitlines()[0] == sentence, "the class and its test differ"


def test_a_route_has_the_name_and_the_sentence_of_its_verb() -> None:
    sentences = {verb.SCRIPT: (verb.__doc__ or "").splitlines()[0] for verb in every_verb()}
    routes = {route.name: route for route in ROUTES}
    assert {*routes} - {*sentences} <= NO_VERB
    for name in {*routes} & {*sentences}:
        assert routes[name].summary == sentences[name]
    assert len(routes) > len(NO_VERB)


def test_one_file_for_each_verb() -> None:
    files = {path.stem for path in lua_files() if not path.stem.startswith("_")}
    assert files == {verb.SCRIPT for verb in every_verb()}
    assert {path.stem for path in lua_files()} - files == {PRELUDE, *SHARED}


@each_verb
def test_a_file_says_what_it_returns_and_what_a_second_run_does(verb: type[Verb[Any]]) -> None:
    labels = list(header(verb))
    assert labels[:4] == ["Sentence", "Returns", "Errors", "Twice"]
    assert labels[4:] in ([], ["Flags"])


@each_verb
def test_repeatable_says_what_the_twice_line_says(verb: type[Verb[Any]]) -> None:
    must_not = "not to be sent again" in header(verb)["Twice"]
    assert verb.REPEATABLE is not must_not


@each_verb
def test_what_only_reads_is_marked_so(verb: type[Verb[Any]]) -> None:
    only_reads = header(verb).get("Flags") == "no-writes"
    assert only_reads == (header(verb)["Twice"] == "reads again")


@each_verb
def test_the_errors_line_names_the_codes_that_the_script_can_answer(verb: type[Verb[Any]]) -> None:
    source = "\n".join([*called([verb.SCRIPT]), read(verb.SCRIPT)])
    raised = set(re.findall(r"fail\('([A-Z_]+)'", source)) - OF_EVERY_SCRIPT
    assert set(re.findall(r"\b[A-Z]+_[A-Z_]+\b", header(verb)["Errors"])) == raised
    assert raised or header(verb)["Errors"].startswith("none")


@each_verb
def test_the_class_names_the_errors_that_its_script_raises(verb: type[Verb[Any]]) -> None:
    named = re.findall(r"\b[A-Z]+_[A-Z_]+\b", header(verb)["Errors"])
    for code in named:
        assert FairlaneError.codes[code].__name__ in (verb.__doc__ or "")


def test_every_code_of_a_script_is_a_class_and_the_other_way_round() -> None:
    said = {
        code
        for path in lua_files()
        for code in re.findall(r"fail\('([A-Z_]+)'", path.read_text(encoding="utf-8"))
    }
    by_scripts = {code for code, kind in FairlaneError.codes.items() if issubclass(kind, Conflict)}
    assert (
        said
        == by_scripts
        | {"FILE_NOT_FOUND", "TASK_NOT_FOUND", "TOKEN_NOT_FOUND", "UNKNOWN_LANE"}
        | OF_EVERY_SCRIPT
    )


def test_the_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    drawn: dict[str, tuple[str, str | None]] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"    ([│├└─ ]*)([A-Z]\w+)(?: +([A-Z]+(?:_[A-Z]+)*)\b)?", line):
            depth = len(found[1]) // 4
            path[depth:] = [found[2]]
            drawn[found[2]] = (path[depth - 1] if depth else "Exception", found[3])
    drawn.pop("Defer")
    classes = {
        kind.__name__: (kind.__mro__[1].__name__, kind.__dict__.get("code"))
        for kind in _tree(FairlaneError)
        if kind.__module__ == errors.__name__
    }
    classes["FairlaneError"] = ("Exception", None)
    assert drawn == classes
    assert {kind.__name__ for kind in _tree(Exception) if kind.__module__ == errors.__name__} == {
        *classes,
        "Defer",
        "Fail",
    }


def test_one_life_of_a_task_in_python_lua_and_the_docs() -> None:
    expected = {(str(one), str(other)) for one in TRANSITIONS for other in TRANSITIONS[one]}
    table = definitions()["TRANSITIONS"]
    lua = {
        (one, other)
        for one, others in re.findall(r"(\w+) = '([\w ]+)'", table)
        for other in others.split()
    }
    assert lua == expected
    text = (ROOT / "docs" / "lifecycle.md").read_text(encoding="utf-8")
    edges = set(re.findall(r"^ +(\S+) --> (\S+)", text, re.MULTILINE))
    assert {edge for edge in edges if "[*]" not in edge} == expected
    assert {one for one, other in edges if other == "[*]"} == TERMINAL - {TaskState.DEAD}
    rows = set(re.findall(r"^\| (\w+) → (\w+) \|", text, re.MULTILINE))
    assert rows == expected, "the table of who moves what"


def test_a_state_changes_in_one_place_only() -> None:
    for path in lua_files():
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.search(r"'HSET', TASK .. id, 'state'", line):
                # An accepted task has no state before.
                assert path.stem in ("_task", "enqueue"), line


def test_no_script_walks_the_keyspace() -> None:
    for path in lua_files():
        assert not re.search(r"'(SCAN|KEYS|[SHZ]SCAN|FLUSH\w+)'", path.read_text(encoding="utf-8"))


def test_every_loop_of_a_script_is_bounded() -> None:
    for path in lua_files():
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not re.match(r"\s*repeat\b", line), f"{path.name}: {line}"
            if re.match(r"\s*while\b", line):
                assert re.search(r"#\w+ < \w+", line), f"{path.name}: {line}"


def test_every_shared_function_is_used() -> None:
    used = " ".join(
        [read(verb.SCRIPT) for verb in every_verb()] + [*definitions().values()],
    )
    for name in definitions():
        assert len(re.findall(rf"\b{name}\b", used)) > 1, f"nobody calls {name}"


def test_no_key_is_spelt_outside_the_table() -> None:
    for path in [*python_files(), *lua_files()]:
        if path.name != "keys.py":
            assert not re.search(r"['\"]sensitive:|abnormal:", path.read_text(encoding="utf-8")), (
                path
            )


def test_every_key_is_used_by_a_script_or_a_client() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in lua_files())
    for name in [row.lua for row in (*TABLE, ABNORMAL)]:
        in_python = f'name("{name}")' in (SOURCE / "keys.py").read_text(encoding="utf-8")
        assert re.search(rf"\b{name}\b", text) or in_python, name


@pytest.mark.parametrize("module", ["fairlane", "fairlane.verbs", "fairlane.client"])
def test_public_names_are_sorted_and_there(module: str) -> None:
    found = importlib.import_module(module)
    assert list(found.__all__) == sorted(found.__all__)
    assert all(hasattr(found, name) for name in found.__all__)


def test_every_verb_is_public() -> None:
    assert {verb.__name__ for verb in every_verb()} | {"Verb", "every_verb"} == set(verbs.__all__)
    assert {"Client", "AsyncClient", "Settings", "handler"} <= set(fairlane.__all__)


def test_no_name_that_says_nothing() -> None:
    for path in python_files():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [path.stem] + [
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
        for name in names:
            words = re.split(r"_|(?<=[a-z])(?=[A-Z])", name)
            told = {word.lower() for word in words}
            starts = [word for word in BANNED if word.endswith("_") and name.startswith(word)]
            assert name in FIXED or not (told & set(BANNED) or starts), f"{path.name}: {name}"


def test_a_file_is_one_room() -> None:
    pages = [
        path for kind in ("ts", "tsx", "css") for path in (ROOT / "web/src").rglob(f"*.{kind}")
    ]
    generated = ROOT / "web/src/api.gen.ts"
    for path in [*SOURCE.rglob("*.py"), *lua_files(), *(ROOT / "tests").rglob("*.py"), *pages]:
        assert path == generated or len(path.read_text(encoding="utf-8").splitlines()) <= 400, path


def _tree(kind: type[Exception]) -> Iterator[type[Exception]]:
    for below in kind.__subclasses__():
        yield below
        yield from _tree(below)
