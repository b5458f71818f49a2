"""What the handlers of this process work with: the file store and the keyword lists.

The rule: a worker calls `configure` once at its start; until then a task that names a file fails
with a sentence that says so, and the shipped keyword list is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.errors import Fail, FileNotKnown
from fairlane.files import FileStore

if TYPE_CHECKING:
    from fairlane.detect.keywords import Keywords


@dataclass(slots=True)
class _Setup:
    files: FileStore | None = None
    keyword_files: tuple[Path, ...] = ()
    keywords: Keywords | None = None


_setup = _Setup()


def configure(files: FileStore, keyword_files: Sequence[Path] = ()) -> None:
    """Say where tasks' files are and which keyword lists to search besides the shipped one.

    The lists are read at the first task; calling again replaces both.
    """
    _setup.files = files
    _setup.keyword_files = tuple(keyword_files)
    _setup.keywords = None


def keywords() -> Keywords:
    """Return this process's keywords, compiled at the first call.

    Raises InvalidKeywords if a configured list cannot be read.
    """
    if _setup.keywords is None:
        from fairlane.detect.keywords import load

        _setup.keywords = load(_setup.keyword_files)
    return _setup.keywords


def stored_file(name: object) -> bytes:
    """Return the bytes of the file that a task names.

    Raises Fail if there is no file store or no such file: another attempt would end alike.
    """
    if _setup.files is None:
        raise Fail("no file store is configured: the worker has to call fairlane.detect.configure")
    if not isinstance(name, str):
        raise Fail(f"data.file: a file's name is a string of 64 hex digits, not {name!r:.40}")
    try:
        return _setup.files.get(name)
    except FileNotKnown as error:
        raise Fail(f"data.{error}") from error
