"""Bodies of requests, read and decoded strictly.

The rule: nothing is guessed. The size limit holds on the stream, so that a body that is too large,
chunked or not, is refused before it is read to its end. JSON is RFC 8259 and no more: UTF-8, no NaN
or infinity, no number that is none (1e999), no lone surrogate, no key twice, and numbers come out
as they went in.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Sequence
from types import coroutine
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

import msgspec
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from fairlane.http.caller import caller
from fairlane.http.problem import Problem

S = TypeVar("S", bound=msgspec.Struct)

JSON: Final = ("application/json",)
#: An ordinary body is a few fields.
SMALL_BYTES: Final = 256 * 1024
#: A body that takes longer is no body: it holds a connection.
READ_S: Final = 30.0

#: Where a request keeps its headers by name.
_HEADERS: Final = "fairlane.headers"
_decode: Final = msgspec.json.Decoder().decode
#: A string of JSON, and the colon behind it if it is a key.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"[ \t\r\n]*+(:?)', re.DOTALL)


def headers(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers by name; of one that stands twice, the last."""
    named: dict[bytes, bytes] | None = scope.get(_HEADERS)
    if named is None:
        named = scope[_HEADERS] = dict(scope["headers"])
    return named


def header(scope: Scope, name: bytes) -> str | None:
    """Return a header's value, None without it. Raises a 400 for one that stands twice.

    For a route that is asked often.
    """
    named = headers(scope)
    value = named.get(name)
    if value is None:
        return None
    if len(named) < len(scope["headers"]) and _count(scope, name) > 1:
        raise Problem(400, "HEADER_TWICE", f"{name.decode()} stands twice; send it once")
    return str(value, "latin-1")


def _count(scope: Scope, name: bytes) -> int:
    return sum(found == name for found, _ in scope["headers"])


def check_coding(scope: Scope) -> None:
    """Raise a 415 for a body that is packed."""
    coding = header(scope, b"content-encoding")
    if coding is not None and coding.strip().lower() != "identity":
        raise Problem(
            415,
            "UNSUPPORTED_MEDIA_TYPE",
            f"content-encoding: {ascii(coding)[:80]}; send the body as it is",
            headers={"Accept-Encoding": "identity", "Connection": "close"},
        )


def check_type(scope: Scope, types: Sequence[str]) -> str:
    """Return the body's content type. Raises a 415 unless it is one of `types`, in UTF-8, as is."""
    named = headers(scope)
    if len(named) < len(scope["headers"]) or b"content-encoding" in named:
        check_coding(scope)
    given = header(scope, b"content-type") or ""
    if given in types:
        return given
    kind, _, parameters = given.partition(";")
    kind = kind.strip().lower()
    charset = parameters.lower().replace('"', "").replace(" ", "").rstrip(";")
    if kind not in types or charset not in ("", "charset=utf-8", "charset=utf8"):
        raise Problem(
            415,
            "UNSUPPORTED_MEDIA_TYPE",
            f"content-type: {ascii(given)[:80]}; send {' or '.join(types)}, in UTF-8",
        )
    return kind


async def read(scope: Scope, receive: Receive, most: int) -> bytes:
    """Return the body. Raises a 413 as soon as it is over `most` bytes, a 408 if it does not end.

    Raises ClientDisconnect when the caller is gone.
    """
    declared = header(scope, b"content-length") or ""
    if declared.isdecimal() and int(declared[:20]) > most:
        raise _too_large(most)
    reading = _stream(receive, most)
    try:
        waits_for = reading.send(None)
    except StopIteration as whole:
        # It was all there, as most bodies are: no timer has to be set up for it.
        read: bytes = whole.value
        return read
    try:
        async with asyncio.timeout(READ_S):
            return await _resumed(reading, waits_for)
    except TimeoutError:
        raise Problem(408, "BODY_TOO_SLOW", f"the body took over {READ_S:.0f} s") from None


@coroutine
def _resumed(begun: Coroutine[Any, Any, bytes], waits_for: Any) -> Generator[Any, Any, bytes]:
    """Go on with a coroutine that was begun and waits; return what it returns."""
    while True:
        try:
            try:
                got = yield waits_for
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is for the coroutine
                waits_for = begun.throw(error)
            else:
                waits_for = begun.send(got)
        except StopIteration as ended:
            result: bytes = ended.value
            return result


async def _stream(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size, is_more = 0, True
    while is_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part, is_more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size > most:
            raise _too_large(most)
        if not is_more and not parts:
            return bytes(part)
        parts.append(part)
    return b"".join(parts)


def strict(raw: bytes) -> Any:
    """Return what a JSON text says. Raises a 422 for anything that is not strictly JSON."""
    try:
        value = _decode(raw)
    except msgspec.DecodeError as error:
        raise _malformed(_said(error)) from None
    except RecursionError:
        raise _malformed("it is nested too deeply") from None
    _refuse_twins(raw, value)
    return value


def shaped(value: Any, shape: type[S]) -> S:
    """Return a decoded value as a Struct. Raises a 422 that names what does not fit."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        detail = _said(error)
        if "unknown field" in detail:
            detail += f"; known are {', '.join(shape.__struct_fields__)}"
        raise Problem(422, "INVALID_REQUEST", detail) from None


def check_query(scope: Scope) -> None:
    """Raise a 422 for a parameter that stands twice: two readers would read two things."""
    query = scope["query_string"]
    if b"&" not in query:
        return
    names = Counter(name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    name, times = names.most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise Problem(
            422, "INVALID_REQUEST", f"query: {ascii(name)[:80]} stands {times} times; send it once"
        )


class StrictRoute(APIRoute):
    """An ordinary route of FastAPI, for callers that are known, whose body is read as above."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's own route over a strict request."""
        inner = super().get_route_handler()
        has_body = self.body_field is not None

        async def strictly(request: Request) -> Response:
            # Nothing is read, and nothing told, before it is known who calls.
            caller(request)
            check_query(request.scope)
            if has_body:
                check_type(request.scope, JSON)
                request = _StrictRequest(request.scope, request.receive)
            return await inner(request)

        return strictly


class _StrictRequest(Request):
    async def body(self) -> bytes:
        if not hasattr(self, "_read"):
            self._read = await read(self.scope, self.receive, SMALL_BYTES)
        return self._read

    async def json(self) -> Any:
        return strict(await self.body())


def _refuse_twins(raw: bytes, value: Any) -> None:
    """Raise for a key that stands twice in an object: two readers would read two things."""
    keys = _keys(value)
    # Every key has a colon; so as many colons as keys leave none for a twin.
    if raw.count(b":") == keys or _STRING.findall(raw).count(b":") == keys:
        return
    twin = "one"

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twin
        read = dict(found)
        if len(read) < len(found):
            times = Counter(name for name, _ in found)
            twin = next(name for name, count in times.items() if count > 1)
        return read

    json.loads(raw, object_pairs_hook=pairs)
    raise _malformed(f"the key {ascii(twin)[:80]} stands twice in an object")


def _keys(value: Any) -> int:
    """Return how many keys all objects in a value have together."""
    count = 0
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if type(found) is dict:
            count += len(found)
            found = found.values()
        elif type(found) is not list:
            continue
        waiting += [inner for inner in found if type(inner) in (dict, list)]
    return count


def _too_large(most: int) -> Problem:
    # What is left of the body is not read: the connection is of no more use.
    headers = {"Connection": "close"}
    return Problem(413, "BODY_TOO_LARGE", f"body: over {most} bytes", headers=headers)


def _malformed(detail: str) -> Problem:
    return Problem(422, "MALFORMED_JSON", f"body: {detail}")


def _said(error: Exception) -> str:
    return str(error).encode(errors="replace").decode()[:300]
