"""Connections of callers: how long one may take to say what it wants, and how many there are.

The rule: a connection costs something only while a request is in work. Before that it has
`HEAD_S` for a whole head, which is bounded in bytes and fields; after that it may stay idle for
`IDLE_S`. When there are too many, those that have not said what they want make room first.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from fairlane.http.guard import SECURITY
from fairlane.http.problem import Problem

#: From the connection, or from a head's first byte, to its last.
HEAD_S: Final = 10.0
#: A connection stays open between two requests for this long.
IDLE_S: Final = 30
#: An answer that is not read for this long after its end is thrown away.
UNREAD_S: Final = 60
#: A token is the largest thing in a head.
HEAD_BYTES: Final = 32 * 1024
HEAD_FIELDS: Final = 100


class Connections:
    """Those that wait for a head, so many in all; what has waited longest comes first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._opening: dict[Connection, float] = {}
        self._idle: dict[Connection, float] = {}

    def opens(self, connection: Connection, now_s: float) -> None:
        """Await the head of a connection from now on."""
        self._idle.pop(connection, None)
        self._opening[connection] = now_s + HEAD_S

    def rests(self, connection: Connection, now_s: float) -> None:
        """Keep a connection whose request was answered, for another one."""
        self._idle[connection] = now_s + IDLE_S + UNREAD_S

    def leaves(self, connection: Connection) -> None:
        """Wait no more for a connection: its head is whole, or it is gone."""
        self._opening.pop(connection, None)
        self._idle.pop(connection, None)

    def is_idle(self, connection: Connection) -> bool:
        """Whether a connection waits for the first byte of another head."""
        return connection in self._idle

    def make_room(self, newcomer: Connection) -> bool:
        """Cut who has waited longest without a head, else who is idle; False if there is nobody."""
        for waiting in (self._opening, self._idle):
            oldest = next(iter(waiting), newcomer)
            if oldest is not newcomer:
                self.leaves(oldest)
                oldest.transport.abort()
                return True
        return False

    async def cut(self) -> None:
        """Cut those whose time is over."""
        now_s = asyncio.get_running_loop().time()
        for waiting in (self._opening, self._idle):
            late = []
            for connection, until_s in waiting.items():
                if until_s > now_s:
                    break
                late.append(connection)
            for connection in late:
                self.leaves(connection)
                connection.end()


class _RefusedError(Exception):
    """What came is refused; the parser passes it on."""


class Connection(HttpToolsProtocol):
    """uvicorn's connection, within bounds."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        connections: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all = connections
        #: Bytes that came since the parser last told of a whole head or a part of a body.
        self._untold = 0
        self._chunk = 0
        self._is_told = False
        #: Whether the head is whole: what comes then as a field is of a trailer.
        self._is_whole = False
        self._trailers = 0
        #: What is being read, and what is to be read once more.
        self._data = self._again = b""
        #: Whether the head offers another protocol, which is declined.
        self._offers = False
        self._refused: Problem | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Await a head; with too many others, in the place of one that waits."""
        super().connection_made(transport)
        self._all.opens(self, self.loop.time())
        if len(self.connections) > self._all.most and not self._all.make_room(self):
            self._all.leaves(self)
            self._answer(
                Problem(503, "TOO_MANY_CONNECTIONS", "every connection is in use", retry_after_s=2)
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._all.leaves(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; refuse what only grows."""
        self._chunk, self._is_told, self._data = len(data), False, data
        super().data_received(data)
        while self._again and not self.transport.is_closing():
            self._data, self._again = self._again, b""
            super().data_received(self._data)
        self._data = b""
        if self._is_told:
            self._untold = 0
        elif not self.transport.is_closing():
            self._untold += self._chunk
            if self._untold > HEAD_BYTES:
                self._answer(_too_large())
        if self._all.is_idle(self) and not self.transport.is_closing():
            self._all.opens(self, self.loop.time())

    def on_message_begin(self) -> None:
        """Await the fields of a head."""
        self._is_whole, self._trailers = False, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field. Raises for one too many, which the parser passes on.

        Those of a trailer are counted and dropped: they say nothing about who sends the request.
        """
        if len(self.headers) + self._trailers >= HEAD_FIELDS:
            self._refuse(_too_large())
        if self._is_whole:
            self._trailers += 1
        else:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin the request of a whole head."""
        self._is_told = self._is_whole = True
        if self._untold + self._chunk > HEAD_BYTES and self._head_bytes() > HEAD_BYTES:
            self._refuse(_too_large())
        self._check_framing()
        self._all.leaves(self)
        self._offers = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        if not self._offers:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body; its size is the route's to bound."""
        self._is_told = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request; one whose head offers another protocol has yet to begin."""
        if not self._offers:
            super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Go on with HTTP/1.1, as if nothing else had been offered (RFC 9110, 7.8).

        The parser would leave out the body, and all that follows.
        """
        stopped = sys.exc_info()[1]
        if not self._offers or stopped is None:
            return
        fields = [
            (name, value)
            for name, value in self.headers
            if name not in (b"upgrade", b"http2-settings", b"connection")
        ]
        said = b",".join(value for name, value in self.headers if name == b"connection").lower()
        fields += [(b"connection", word) for word in (b"close", b"keep-alive") if word in said]
        version = self.parser.get_http_version().encode()
        line = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, version)
        head = line + b"".join(b"%b: %b\r\n" % field for field in fields)
        self.parser = httptools.HttpRequestParser(self)
        self._again = head + b"\r\n" + self._data[stopped.args[0] :]

    def on_response_complete(self) -> None:
        """Wait for the next head, also of a caller who has not read the answer yet."""
        is_last = not self.pipeline
        super().on_response_complete()
        if is_last and self in self.connections:
            self._all.rests(self, self.loop.time())

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, or was refused."""
        self._answer(self._refused or Problem(400, "INVALID_HTTP", "this is no HTTP/1.1 request"))

    def end(self) -> None:
        """Cut the connection; who has sent half a head is told why."""
        if self._untold and not self.transport.is_closing():
            detail = f"the request's head took over {HEAD_S:.0f} s"
            self._answer(Problem(408, "HEAD_TOO_SLOW", detail))
        else:
            self.transport.abort()

    def _check_framing(self) -> None:
        """Refuse a head of which two servers could think two things (RFC 9112, 3.2 and 6.1)."""
        hosts, codings = 0, b""
        for name, value in self.headers:
            if name == b"host":
                hosts += 1
            elif name == b"transfer-encoding":
                codings += value
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            detail = "Host: a request of HTTP/1.1 has it once"
            self._refuse(Problem(400, "INVALID_HTTP", detail))
        if codings and codings.lower() != b"chunked":
            detail = "Transfer-Encoding: send `chunked` and nothing else"
            self._refuse(Problem(501, "UNKNOWN_TRANSFER_CODING", detail))

    def _refuse(self, problem: Problem) -> None:
        self._refused = problem
        raise _RefusedError

    def _head_bytes(self) -> int:
        fields = sum(len(name) + len(value) + len(b": \r\n") for name, value in self.headers)
        return len(self.url) + fields

    def _answer(self, problem: Problem) -> None:
        """Send a problem and close; in the middle of another answer only close."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()
            return
        response = problem.response()
        fields = [
            *self.server_state.default_headers,
            *response.raw_headers,
            *SECURITY,
            (b"connection", b"close"),
        ]
        head = b"".join(b"%b: %b\r\n" % field for field in fields)
        told = STATUS_LINE[problem.status_code] + head + b"\r\n" + bytes(response.body)
        self.transport.write(told)
        self.transport.close()


def _too_large() -> Problem:
    return Problem(
        431,
        "HEAD_TOO_LARGE",
        f"the request's head is over {HEAD_BYTES} bytes or {HEAD_FIELDS} fields",
    )
