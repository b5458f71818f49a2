"""Scripts: the Lua of a verb, whole and addressed by its content.

The rule: a script is its shebang, the key names and settings that it uses, the prelude, the shared
functions that it calls and the verb's file, in this order, and is called by the SHA-1 of all that.
Two versions of fairlane side by side therefore call two scripts; no deploy swaps code under a
running process.

Only what a verb calls goes with it, and a setting stands as a literal where the files say `C.name`:
Lua makes every function and table of a script anew in each run; all of them together cost 19 µs,
more than the commands of most verbs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
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
    "_cost",
    "_order",
    "_turn",
    "_sites",
    "_admission",
    "_capacity",
)
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
class Script:
    """One verb's script for one namespace."""

    name: str
    source: bytes
    sha: str


@cache
def read(name: str) -> str:
    """Return the text of a file of `fairlane/lua`, without its ending in the name."""
    return files("fairlane").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")


@cache
def load(name: str, keys: Keys, agreed: tuple[Settings, str] | None) -> Script:
    """Return the whole script of a verb, with the settings that it uses as literals.

    `agreed` are the settings joined and the store's digest of them: the script answers
    CONFIG_CHANGED when the store has another digest by now. Without them it is a script that sets
    the store up.

    The shebang stands on the very first line, or the server would not see it; its flags are those
    of the file's `Flags` line, none without one.
    """
    body = read(name)
    flags = _FLAGS.search(body)
    shebang = f"#!lua flags={flags[1]}" if flags else "#!lua"
    text = "\n".join([read(PRELUDE), *_called(body), body])
    digest = "nil"
    if agreed is not None:
        settings, store_digest = agreed
        values, digest = settings.constants(), repr(store_digest)
        text = _SETTING.sub(lambda found: repr(values[found[1]]), text)
    head = f"{shebang}\n{keys.lua(_NAME.findall(text))}\nlocal DIGEST = {digest}\n"
    source = (head + text).encode()
    return Script(name, source, hashlib.sha1(source, usedforsecurity=False).hexdigest())


@cache
def definitions() -> dict[str, str]:
    """Return the shared functions and constants by name, in the order of their files."""
    return {name: block for shared in SHARED for name, block in _definitions(read(shared))}


def _definitions(text: str) -> Iterator[tuple[str, str]]:
    for found in _DEFINITION.finditer(text):
        yield found[1] or found[2], found[0]


def _called(body: str) -> list[str]:
    """Return the definitions that a body names, and those that they name, in order."""
    wanted = set(_NAME.findall(body))
    called = []
    for name, block in reversed(definitions().items()):
        if name in wanted:
            called.append(block)
            wanted.update(_NAME.findall(block))
    return called[::-1]
