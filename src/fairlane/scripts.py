"""Scripts: the Lua of a verb, whole and addressed by its content.

The rule: a script is its shebang, the key names, the shared files and the verb's file, in this
order, and is called by the SHA-1 of all that. Two versions of fairlane side by side therefore call
two scripts; no deploy swaps code under a running process.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from fairlane.keys import Keys

#: Before every verb, in this order.
SHARED: Final = ("_prelude", "_device", "_order", "_turn", "_limits")
_FLAGS: Final = re.compile(r"^-- Flags +(\S+)$", re.MULTILINE)


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
def load(name: str, keys: Keys) -> Script:
    """Return the whole script of a verb.

    The shebang stands on the very first line, or the server would not see it; its flags are those
    of the file's `Flags` line, none without one.
    """
    body = read(name)
    flags = _FLAGS.search(body)
    shebang = f"#!lua flags={flags[1]}" if flags else "#!lua"
    source = "\n".join([shebang, keys.lua(), *map(read, SHARED), body]).encode()
    return Script(name, source, hashlib.sha1(source, usedforsecurity=False).hexdigest())
