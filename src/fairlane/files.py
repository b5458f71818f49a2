"""Files that tasks name: images and long texts travel by reference.

The rule: a file's name is the SHA-256 of its bytes, so a name cannot point anywhere but into this
store, storing twice stores once, and a worker can check what it reads. A payload is hostile: it
never names a path. Where the bytes are, a folder or a bucket, only the store knows.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol

from fairlane.errors import FileNotKnown

if TYPE_CHECKING:
    from fairlane.settings import Settings

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_SHOWN: Final = 80


class Place(Protocol):
    """Where files are. An OSError is trouble that may pass; a missing file is FileNotFoundError."""

    def temporary(self) -> IO[bytes]:
        """Return a file to write to, from which `keep` takes the bytes."""

    def keep(self, name: str, written: IO[bytes]) -> None:
        """Store what was written under a name, at once or not at all."""

    def read(self, name: str) -> bytes:
        """Return a file's bytes."""

    def has(self, name: str) -> bool:
        """Whether a file is there."""

    def delete(self, name: str) -> None:
        """Delete a file; one that is not there is none to delete."""


class FileStore:
    """Files named by the SHA-256 of their content, in a folder or a bucket."""

    def __init__(self, place: Path | Place) -> None:
        self._place: Place = Folder(place) if isinstance(place, Path) else place

    @classmethod
    def of(cls, settings: Settings) -> FileStore:
        """Return the store that the settings name. Raises InvalidSettings for an odd URL."""
        if "://" in settings.files_url:
            from fairlane.bucket import Bucket

            return cls(Bucket(settings.files_url))
        return cls(settings.files_dir)

    def put(self, content: bytes) -> str:
        """Store the bytes and return their name; storing the same bytes again changes nothing."""
        with self.incoming() as incoming:
            incoming.write(content)
            return incoming.keep()

    @contextmanager
    def incoming(self) -> Iterator[Incoming]:
        """Give a file that is written part by part; what is not kept is gone afterwards."""
        with self._place.temporary() as written:
            yield Incoming(self._place, written)

    def get(self, name: str) -> bytes:
        """Return a file's bytes. Raises FileNotKnown for a name that is no SHA-256, or unknown."""
        checked_file_name(name)
        try:
            return self._place.read(name)
        except FileNotFoundError:
            raise FileNotKnown(f"file: {name} is not stored here; store it first") from None

    def has(self, name: str) -> bool:
        """Whether a file is stored. Raises FileNotKnown for a name that is no SHA-256."""
        return self._place.has(checked_file_name(name))

    def delete(self, name: str) -> None:
        """Delete a file, if it is there. Raises FileNotKnown for a name that is no SHA-256."""
        self._place.delete(checked_file_name(name))


class Incoming:
    """A file that is coming in: its bytes so far, their number and their hash."""

    def __init__(self, place: Place, written: IO[bytes]) -> None:
        self._place = place
        self._hash = hashlib.sha256()
        #: What was written, for whoever looks at it before it is kept.
        self.written: Final = written
        self.size = 0

    @property
    def name(self) -> str:
        """The name of what was written so far."""
        return self._hash.hexdigest()

    def write(self, part: bytes) -> None:
        """Add bytes."""
        self.written.write(part)
        self._hash.update(part)
        self.size += len(part)

    def keep(self) -> str:
        """Store what was written, unless it is stored already; return its name."""
        if not self._place.has(self.name):
            self.written.flush()
            self._place.keep(self.name, self.written)
        return self.name


class Folder:
    """A folder, spread over 256 subfolders; only its owner reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def temporary(self) -> IO[bytes]:
        """Return a file of no name in the folder's file system."""
        incoming = self.folder / "incoming"
        incoming.mkdir(parents=True, exist_ok=True, mode=0o700)
        return tempfile.TemporaryFile(dir=incoming)

    def keep(self, name: str, written: IO[bytes]) -> None:
        """Write a file beside its place, sync it and rename it into it."""
        target = self._path(name)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                written.seek(0)
                shutil.copyfileobj(written, file, 1024 * 1024)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def read(self, name: str) -> bytes:
        """Return a file's bytes."""
        return self._path(name).read_bytes()

    def has(self, name: str) -> bool:
        """Whether a file is there."""
        return self._path(name).exists()

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / name


def is_file_name(name: object) -> bool:
    """Whether this is a file's name: 64 hex digits in lower case."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def checked_file_name(name: str) -> str:
    """Return a file's name. Raises FileNotKnown for what none can be."""
    if not is_file_name(name):
        raise FileNotKnown(
            f"file: {ascii(name)[:_SHOWN]} is no file name; "
            "send the 64 hex digits that storing it answered"
        )
    return name
