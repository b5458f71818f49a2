"""Files that tasks name: images and long texts travel by reference.

The rule: a file's name is the SHA-256 of its bytes, so a name cannot point anywhere but into this
folder, storing twice stores once, and a worker can check what it reads. A payload is hostile: it
never names a path.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Final

from fairlane.errors import FileNotKnown

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_SHOWN: Final = 80


class FileStore:
    """A folder of files named by the SHA-256 of their content, spread over 256 subfolders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, content: bytes) -> str:
        """Store the bytes and return their name; storing the same bytes again changes nothing."""
        name = hashlib.sha256(content).hexdigest()
        target = self._place(name)
        if target.exists():
            return name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return name

    def get(self, name: str) -> bytes:
        """Return a file's bytes. Raises FileNotKnown for a name that is no SHA-256, or unknown."""
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise FileNotKnown(
                f"file: {ascii(name)[:_SHOWN]} is no file name; "
                "send the 64 hex digits that storing it answered"
            )
        try:
            return self._place(name).read_bytes()
        except FileNotFoundError:
            raise FileNotKnown(f"file: {name} is not stored here; store it first") from None

    def _place(self, name: str) -> Path:
        return self.folder / name[:2] / name
