"""HEAD: the answer of a GET without its body.

The rule: whoever asks by HEAD gets the status and the headers that a GET would get, on every path
that has one; the work is the same, and a stream ends where it would begin.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Head:
    """Let an application see a GET, and leave the body out of what it answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        is_over = False

        async def without_body(message: Message) -> None:
            nonlocal is_over
            if message["type"] == "http.response.body":
                if is_over:
                    return
                is_over = True
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        async def until_over() -> Message:
            # Who streams ends when the caller is gone.
            return {"type": "http.disconnect"} if is_over else await receive()

        await self._app({**scope, "method": "GET"}, until_over, without_body)
