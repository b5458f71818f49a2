"""An answer in one piece, where uvicorn itself is who sends it.

The rule: what goes over the wire is what uvicorn had written for the same answer in two messages;
whatever is not as usual (a caller who reads slowly, a connection that ends, a `send` that somebody
has wrapped, a release of uvicorn that keeps its answers otherwise) is left to it.
"""

from __future__ import annotations

from typing import Final

from starlette.types import Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

#: What is used of uvicorn's own here; another release may have none of it.
_USED: Final = {
    "response_started", "response_complete", "disconnected", "keep_alive", "flow", "access_log",
    "default_headers", "waiting_for_100_continue", "transport", "message_event", "on_response",
}  # fmt: skip
FITS: Final = {*RequestResponseCycle.__init__.__code__.co_names} >= _USED


def write_whole(send: Send, status: int, fields: bytes, body: bytes) -> bool:
    """Write an answer whose `fields` are ready, each with its line's end; False if it was not.

    `fields` has the content-length, and nothing of the connection.
    """
    cycle = getattr(send, "__self__", None)
    if (
        not FITS
        or type(cycle) is not RequestResponseCycle
        or cycle.response_started
        or cycle.disconnected
        or not cycle.keep_alive
        or cycle.flow.write_paused
        or cycle.access_log
    ):
        return False
    always = b"".join([b"%b: %b\r\n" % field for field in cycle.default_headers])
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(b"".join((STATUS_LINE[status], always, fields, b"\r\n", body)))
    cycle.message_event.set()
    cycle.on_response()
    return True
