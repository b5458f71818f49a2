"""GET /v1/events: the live feed as server-sent events.

The rule: a stream ends rather than blocks. Whoever does not read for `SLOW_S` is cut off, and comes
back with the id of the last message that he had. It ends with its token, too.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from fairlane.client.calls import EVENT_ID
from fairlane.http.body import StrictRoute
from fairlane.http.caller import READERS, caller
from fairlane.http.door import Door
from fairlane.http.feed import Feed, Watcher
from fairlane.http.gate import within_limit
from fairlane.http.openapi import problems

log = logging.getLogger("fairlane.http")

router = APIRouter(route_class=StrictRoute, tags=["events"])

#: A stream that says nothing would be taken for a dead one.
PING_S: Final = 15.0
SLOW_S: Final = 10.0
#: The longest that a caller may ask for; without a word a stream has no end.
MAX_TIMEOUT_S: Final = 86_400


#: A message as the description of the service tells it, field by field.
_MESSAGE: Final = {
    "type": "object",
    "properties": {
        "event": {"enum": ["snapshot", "delta", "trouble"]},
        "id": {"type": "string", "description": "Come back with it as Last-Event-ID."},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}


class _TooSlowError(Exception):
    """The reader did not read."""


class EventStream(StreamingResponse):
    """The messages of a watcher."""

    media_type = "text/event-stream"

    def __init__(
        self,
        feed: Feed,
        watcher: Watcher,
        *,
        ping_s: float = PING_S,
        timeout_s: float | None = None,
        may_go_on: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._feed, self._watcher, self._ping_s = feed, watcher, ping_s
        self._timeout_s = math.inf if timeout_s is None else timeout_s
        self._may_go_on = may_go_on
        # `no-transform`, and the word that nginx knows: a proxy must not gather messages.
        headers = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
        super().__init__(self._messages(), headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send messages until the watcher is gone, or too slow."""

        async def soon(message: Message) -> None:
            try:
                async with asyncio.timeout(SLOW_S):
                    await send(message)
            except TimeoutError:
                # No TimeoutError: that is an OSError, which would be taken for a caller who left.
                raise _TooSlowError from None

        try:
            await super().__call__(scope, receive, soon)
        except _TooSlowError:
            log.info("a reader of the feed is too slow, and cut off")
        finally:
            self._feed.leave(self._watcher)

    async def _messages(self) -> AsyncIterator[bytes]:
        yield b"retry: 2000\n\n"
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + self._timeout_s
        while True:
            left_s = max(0.0, ends_s - loop.time())
            try:
                message = await self._watcher.next(min(self._ping_s, left_s))
            except TimeoutError:
                if left_s <= self._ping_s:
                    return
                message = b": ping\n\n"
            if message is None or (self._may_go_on and not await self._may_go_on()):
                return
            yield message


@router.get(
    "/v1/events",
    summary="Tell what happens as it happens: a snapshot, then what changes.",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/event-stream": {"schema": _MESSAGE}}},
        **problems(401, 403, 422, 503),
    },
)
async def events(
    request: Request,
    last_event_id: Annotated[str, Header(pattern=f"^({EVENT_ID})?$")] = "",
    timeout_s: Annotated[int | None, Query(ge=0, le=MAX_TIMEOUT_S)] = None,
) -> EventStream:
    """Stream `snapshot`, then `delta` messages at most twice a second; `trouble` is the store's.

    With Last-Event-ID, what was missed comes instead of the snapshot, while the store keeps it.
    With `timeout_s` the stream ends by itself: at 0, after what there is to tell at once.
    """
    reader = caller(request).needs(READERS)
    feed: Feed = request.app.state.feed
    door: Door = request.app.state.door
    async with within_limit():
        watcher = await feed.watch(last_event_id)
    return EventStream(
        feed, watcher, timeout_s=timeout_s, may_go_on=partial(door.still_holds, reader)
    )
