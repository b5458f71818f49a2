"""Detection on the files of this machine, without a store or a worker.

The rule: what a file is, its content says, not its name. A file that cannot be read is one typed
error and stops nothing else.
"""

from __future__ import annotations

import codecs
import sys
from pathlib import Path
from typing import Any, Final

from fairlane.detect.image import BadImage, is_image
from fairlane.detect.keywords import Keywords
from fairlane.detect.text import MAX_CHARS, detect
from fairlane.errors import Defer, InvalidInput

STDIN: Final = "-"
MAX_BYTES: Final = 64 * 1024 * 1024

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Unreadable(InvalidInput):
    """A path holds nothing that can be searched; the message says why."""


def inspect_path(
    path: str, *, reveal: bool = False, keywords: Keywords | None = None
) -> dict[str, Any]:
    """Search a file, or standard input for `-`.

    Return `{path, kind, findings}`, `kind` being `text` or `image`; a finding is `{type, value,
    start, end, rule}` in a text and `{type, value, line, box, rule}` in an image, its value masked
    unless `reveal`. Texts are UTF-8, UTF-16 with a byte order mark, or GB 18030.

    Raises Unreadable for a path that cannot be read, is too large, or holds neither.
    """
    content = _content(path)
    if is_image(content):
        kind, findings = "image", _in_image(path, content, keywords)
    else:
        kind, findings = "text", detect(_decoded(path, content), keywords)
    return {
        "path": path,
        "kind": kind,
        "findings": [finding.to_dict(reveal=reveal) for finding in findings],
    }


def _content(path: str) -> bytes:
    try:
        if path == STDIN:
            if sys.stdin is None:
                raise OSError("standard input is closed")
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror or error}") from error
    if len(content) > MAX_BYTES:
        raise Unreadable(f"{path}: over {MAX_BYTES:,} bytes")
    return content


def _in_image(path: str, content: bytes, keywords: Keywords | None) -> Any:
    from fairlane.detect.ocr import detect_image

    try:
        return detect_image(content, keywords)[1]
    except (BadImage, Defer) as error:
        raise Unreadable(f"{path}: {error}") from error


def _decoded(path: str, content: bytes) -> str:
    encodings = ("utf-16",) if content.startswith(_UTF_16) else ("utf-8-sig", "gb18030")
    if encodings != ("utf-16",) and b"\x00" in content:
        raise Unreadable(f"{path}: neither a text nor a PNG, JPEG, WebP, TIFF or BMP image")
    for encoding in encodings:
        try:
            text = content.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    else:
        raise Unreadable(f"{path}: neither a text nor a PNG, JPEG, WebP, TIFF or BMP image")
    if len(text) > MAX_CHARS:
        raise Unreadable(f"{path}: {len(text):,} characters, at most {MAX_CHARS:,}")
    return text
