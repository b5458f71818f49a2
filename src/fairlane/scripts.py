"""Scripts: the Lua of all verbs, as one library of functions that is addressed by its content.

The rule: a library is its shebang, the key names that it uses, the prelude, the shared functions
that are called, and a function for every verb's file; its name, with which that of each function
begins, ends with the SHA-256 of all that. Two versions of fairlane side by side therefore call two
libraries; no deploy swaps code under a running process.

A function of a library is made once, when it is loaded. A script of its own (`EVAL`) makes all
that it calls anew in each run, a fifth of what an enqueue costs, measured. For the same reason a
setting stands as a literal where the files say `C.name`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from fairlane.keys import Keys
from fairlane.settings import Settings

PRELUDE: Final = "_prelude"
#: The shared functions; each may call those above it.
SHARED: Final = (
    "_task",
    "_device",
    "_limits",
    "_tags",
    "_times",
    "_cost",
    "_order",
    "_dead",
    "_turn",
    "_sites",
    "_receipts",
    "_admission",
    "_capacity",
    "_epoch",
    "_tokens",
    "_audit",
    "_mend",
    "_sums",
)
#: The verbs that agree with a store on its settings, and so are there before these.
SETUP: Final = ("join", "migrate")
#: The verbs of `fairlane doctor`, which nobody needs every day. A library holds no more than 200
#: names, keys and shared functions together, and these would be too many for one.
REPAIR: Final = (
    "check_devices",
    "check_sums",
    "check_tasks",
    "members",
    "mend_devices",
    "mend_sums",
    "mend_tasks",
    "reconcile",
    "sum_page",
)
#: What every task goes through: no more commands than it must have.
HOT: Final = ("claim", "enqueue", "enqueue_many", "finish", "pop", "start")
#: What the name of every library begins with.
PREFIX: Final = "fairlane_"
_SETTING: Final = re.compile(r"\bC\.(\w+)")
_FLAGS: Final = re.compile(r"^-- Flags +(\S+)$", re.MULTILINE)
# A comment is one name that nobody has, and a field is none at all.
_NAME: Final = re.compile(r"--[^\n]*|(?<!\.)\b[A-Za-z_]\w*")
# A shared definition starts at the margin and ends there: `local NAME = …`, or a block to its end.
_DEFINITION: Final = re.compile(
    r"^local (?:function )?(\w+)[^\n]*[({)]\n.*?^(?:end|\})$|^local (\w+) = [^\n]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Library:
    """The functions of several verbs, for one namespace and one set of settings."""

    name: str
    source: bytes

    def function(self, verb: str) -> str:
        """Return the name of a verb's function."""
        return f"{self.name}_{verb}"


def is_library(name: str) -> bool:
    """Whether a library of this name is one of ours, of whatever release or settings."""
    return re.fullmatch(rf"{PREFIX}[0-9a-f]{{16}}", name) is not None


@cache
def read(name: str) -> str:
    """Return the text of a file of `fairlane/lua`, without its ending in the name."""
    return files("fairlane").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")


@cache
def verbs() -> tuple[str, ...]:
    """Return the verbs that have a file, by name."""
    names = (path.name.removesuffix(".lua") for path in files("fairlane").joinpath("lua").iterdir())
    return tuple(sorted(name for name in names if not name.startswith("_")))


def library_of(verb: str, keys: Keys, agreed: tuple[Settings, str]) -> Library:
    """Return the library that holds a verb; `agreed` as in `load`."""
    return load(keys, None if verb in SETUP else agreed, repair=verb in REPAIR)


@cache
def load(keys: Keys, agreed: tuple[Settings, str] | None, *, repair: bool = False) -> Library:
    """Return the library of the everyday verbs, with the settings that they use as literals.

    `agreed` are the settings joined and the store's digest of them: a function answers
    CONFIG_CHANGED when the store has another digest by now. Without them it is the library of the
    verbs that set the store up. With `repair` it is that of REPAIR.
    """
    names = [
        name
        for name in verbs()
        if (name in SETUP) == (agreed is None) and (name in REPAIR) == repair
    ]
    functions = [_function(name, keys) for name in names]
    text = "\n".join([read(PRELUDE), *called(names), *functions])
    digest = "nil"
    if agreed is not None:
        settings, store_digest = agreed
        values, digest = settings.constants(), repr(store_digest)
        text = _SETTING.sub(lambda found: repr(values[found[1]]), text)
    text = f"{keys.lua(_NAME.findall(text))}\nlocal DIGEST = {digest}\n{text}\n"
    name = PREFIX + hashlib.sha256(text.encode()).hexdigest()[:16]
    return Library(name, f"#!lua name={name}\n{text.replace('LIBRARY', name)}".encode())


@cache
def definitions() -> dict[str, str]:
    """Return the shared functions and constants by name, in the order of their files."""
    return {name: block for shared in SHARED for name, block in _definitions(read(shared))}


def called(names: Iterable[str]) -> list[str]:
    """Return the definitions that verbs name, and those that these name, in order."""
    wanted = {word for name in names for word in _NAME.findall(read(name))}
    blocks = []
    for name, block in reversed(definitions().items()):
        if name in wanted:
            blocks.append(block)
            wanted.update(_NAME.findall(block))
    return blocks[::-1]


def _function(verb: str, keys: Keys) -> str:
    """Return a verb's file as a function of the library, with the flags of its `Flags` line."""
    body = read(verb)
    flags = _FLAGS.search(body)
    listed = f"'{flags[1]}'" if flags else ""
    touched = keys.types(_NAME.findall("\n".join([*called([verb]), body])))
    looks_first = "false" if verb in HOT or "no-writes" in listed else "true"
    return (
        f"redis.register_function({{ function_name = 'LIBRARY_{verb}', flags = {{ {listed} }},\n"
        f"  callback = guarded({touched}, {looks_first}, function(arguments)\n"
        f"begin(arguments)\n{body}end) }})"
    )


def _definitions(text: str) -> Iterator[tuple[str, str]]:
    for found in _DEFINITION.finditer(text):
        yield found[1] or found[2], found[0]
