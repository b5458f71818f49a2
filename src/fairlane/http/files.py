"""POST /v1/files: images and texts, stored for the tasks that will name them.

The rule: bytes are what they are, not what a header calls them: the type is told from the content,
an image's size from its header before a pixel is decoded, a text read as UTF-8 to its end. The
limit holds on the stream. A file is recorded once it is stored; a task can name only what is
recorded, and nothing is deleted that a task needs.
"""

from __future__ import annotations

import asyncio
import codecs
import logging
import re
from functools import partial
from typing import IO, Final

import msgspec
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from fairlane import verbs
from fairlane.detect.image import BadImage, ImageTooLarge, is_image, measure
from fairlane.files import FileStore, Incoming
from fairlane.http.body import check_coding
from fairlane.http.caller import SENDERS, caller
from fairlane.http.gate import Gate
from fairlane.http.openapi import described
from fairlane.http.problem import Problem
from fairlane.http.route import BareRoute
from fairlane.http.sentence import sentence
from fairlane.settings import Settings
from fairlane.verbs.files import Kept

log = logging.getLogger("fairlane.http")

TYPES: Final = ("image/png", "image/jpeg", "image/webp", "image/tiff", "image/bmp", "text/plain")
#: What says nothing of the content.
_ANY: Final = ("", "application/octet-stream")
_ALIASES: Final = {"image/jpg": "image/jpeg", "image/x-ms-bmp": "image/bmp"}
_CHUNK_BYTES: Final = 1024 * 1024
#: A slow line has this long for a file, and so many files come in at once.
_READ_S: Final = 120.0
_AT_ONCE: Final = 64
#: How often, and after what, a file is stored again that is just being deleted.
_TRIES: Final = 5
_WAIT_S: Final = 0.2
_BYTES: Final = {"type": "string", "format": "binary"}
#: No text has these.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")


class Stored(msgspec.Struct, frozen=True):
    """A stored file; `file` is what a task says in its data."""

    file: str
    type: str
    bytes: int
    width: int | None
    height: int | None


class Depot:
    """The file store of a service, and how many files come in now."""

    def __init__(self, settings: Settings) -> None:
        self.store = FileStore.of(settings)
        self.max_bytes = settings.max_file_bytes
        self.coming = 0


async def keep_file(request: Request) -> Response:
    """Store the body as a file."""
    caller(request).needs(SENDERS)
    depot: Depot = request.app.state.depot
    declared = _declared_type(request)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > depot.max_bytes:
        raise _too_large(depot.max_bytes)
    if depot.coming >= _AT_ONCE:
        raise Problem(503, "TOO_MANY_FILES", "many files come in now; try again", retry_after_s=1)
    depot.coming += 1
    try:
        return await _kept(request, depot, declared)
    except OSError as error:
        log.error("file store: %s", error)
        raise Problem(
            503, "FILE_STORE_UNAVAILABLE", "the file cannot be stored now", retry_after_s=5
        ) from None
    finally:
        depot.coming -= 1


ROUTES: Final = (
    BareRoute(
        "/v1/files",
        keep_file,
        methods=["POST"],
        tags=["files"],
        summary=sentence(verbs.KeepFile),
        status_code=201,
        response_class=Response,
        **described(
            dict.fromkeys(("application/octet-stream", *TYPES), _BYTES),
            {200: Stored, 201: Stored},
            (401, 403, 408, 413, 415, 422, 503),
        ),
    ),
)


async def _kept(request: Request, depot: Depot, declared: str) -> Response:
    run = to_thread.run_sync
    context = depot.store.incoming()
    incoming = await run(context.__enter__)
    try:
        await _receive(request, incoming, depot.max_bytes)
        if not incoming.size:
            raise Problem(422, "INVALID_REQUEST", "body: it is empty; send the file's bytes")
        kind, width, height = await run(partial(sniff, incoming.written))
        if declared not in (*_ANY, kind):
            raise _unsupported(f"content-type says {declared}, and the content is {kind}")
        is_new = await _record(request.app.state.gate, depot.store, incoming)
    finally:
        await run(context.__exit__, None, None, None)
    stored = Stored(incoming.name, kind, incoming.size, width, height)
    return Response(msgspec.json.encode(stored), 201 if is_new else 200, None, "application/json")


async def _receive(request: Request, incoming: Incoming, most: int) -> None:
    """Write the body. Raises a 413 as soon as it is over `most` bytes, a 408 if it does not end."""
    buffer = bytearray()
    try:
        async with asyncio.timeout(_READ_S):
            async for part in request.stream():
                buffer += part
                if incoming.size + len(buffer) > most:
                    raise _too_large(most)
                if len(buffer) >= _CHUNK_BYTES:
                    await to_thread.run_sync(incoming.write, bytes(buffer))
                    buffer.clear()
    except TimeoutError:
        raise Problem(408, "BODY_TOO_SLOW", f"the body took over {_READ_S:.0f} s") from None
    await to_thread.run_sync(incoming.write, bytes(buffer))


async def _record(gate: Gate, store: FileStore, incoming: Incoming) -> bool:
    """Store a file and record it; whether it is new. Raises a 503 while it is being deleted."""
    for _ in range(_TRIES):
        name = await to_thread.run_sync(incoming.keep)
        kept = await gate.run(verbs.KeepFile(name))
        if kept is Kept.DOOMED:
            await asyncio.sleep(_WAIT_S)
            continue
        # Recorded, it is deleted by nobody; a deletion that had begun may just have been quicker.
        if await to_thread.run_sync(store.has, name):
            return kept is Kept.NEW
    raise Problem(
        503, "FILE_STORE_UNAVAILABLE", "the same file is being deleted; send it again",
        retry_after_s=1,
    )  # fmt: skip


def sniff(file: IO[bytes]) -> tuple[str, int | None, int | None]:
    """Return what a file is by its content: media type, width and height.

    Raises a 415 for what is neither image nor text, a 413 for too many pixels.
    """
    file.seek(0)
    begin = file.read(32)
    file.seek(0)
    if is_image(begin):
        try:
            name, width, height = measure(file)
        except ImageTooLarge as error:
            raise Problem(413, "IMAGE_TOO_LARGE", str(error)) from None
        except BadImage:
            raise _unsupported("it begins like an image, and its header is damaged") from None
        return f"image/{name.lower()}", width, height
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while part := file.read(_CHUNK_BYTES):
            if _CONTROLS.search(decoder.decode(part)):
                raise _unsupported("it has control characters that no text has")
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise _unsupported("it is no image, and no text in UTF-8") from None
    return "text/plain", None, None


def _declared_type(request: Request) -> str:
    """Return the content type that a request gives. Raises a 415 for one that is not taken."""
    check_coding(request.scope)
    given = request.headers.get("content-type", "")
    kind, _, parameters = given.lower().partition(";")
    kind = _ALIASES.get(kind.strip(), kind.strip())
    charset = parameters.replace('"', "").replace(" ", "").rstrip(";")
    if kind not in (*_ANY, *TYPES) or charset not in ("", "charset=utf-8", "charset=utf8"):
        raise _unsupported(f"content-type: {ascii(given)[:80]}")
    return kind


def _unsupported(detail: str) -> Problem:
    return Problem(
        415,
        "UNSUPPORTED_MEDIA_TYPE",
        f"{detail}; send the bytes of a PNG, JPEG, WebP, TIFF or BMP image, or of text in UTF-8",
        headers={"Connection": "close"},
    )


def _too_large(most: int) -> Problem:
    # What is left of the body is not read: the connection is of no more use.
    headers = {"Connection": "close"}
    return Problem(413, "BODY_TOO_LARGE", f"body: over {most} bytes", headers=headers)
