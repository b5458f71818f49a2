"""What every request passes on its way in, and every answer on its way out.

Each has an id: that of its `X-Request-Id` if it is a sane one, else a new one. It stands in the
answer and in every line that is logged meanwhile; at level INFO there is a line for each request.

The rule: nothing but `/livez` is answered to whoever is not known, not even that a path is not
there (the dashboard's page comes with the 401, its scripts to anybody: they hold no data); and
every answer tells browsers to load nothing from elsewhere, to frame it nowhere, to
guess no type, to tell no address on, and to keep no copy.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlane import tracing
from fairlane.errors import FairlaneError
from fairlane.http import pages, session
from fairlane.http.caller import CALLER, Identify
from fairlane.http.door import Door
from fairlane.http.problem import Problem, of_error
from fairlane.ids import new_nonce
from fairlane.logs import REQUEST_ID, TASK_ID, UNBOUND

PUBLIC: Final = ("/livez",)
#: Told also while the store is in trouble, whatever was revoked: it is where one looks then.
_OF_TROUBLE: Final = ("/readyz", "/metrics")
CONTENT_SECURITY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
SECURITY: Final = (
    (b"content-security-policy", CONTENT_SECURITY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_NAMES: Final = frozenset(dict(SECURITY))
_SANE: Final = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")
_process: Final = new_nonce()
_numbers: Final = count(1)

log = logging.getLogger("fairlane.request")


class Guard:
    """Let in who is known; tell browsers what not to do with the answer."""

    def __init__(self, app: ASGIApp, door: Door, identify: Identify | None) -> None:
        self._app = app
        self._door = door
        self._identify = identify

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # FastAPI makes a span of a request, as other middleware may; the short way has none.
        if tracing.is_on() and not tracing.current():
            await self._traced(scope, receive, send)
        else:
            await self._serve(scope, receive, send)

    async def _traced(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request within a span, which is told of its route and its answer's status."""
        came = dict(scope["headers"]).get(b"traceparent", b"").decode("latin-1")
        method, parent, status = scope["method"], tracing.checked_traceparent(came), 0

        async def seen(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        with tracing.span(method, parent, "SERVER") as span:
            try:
                await self._serve(scope, receive, seen)
            finally:
                # A path may name a device or a task; a route does not.
                span.update_name(f"{method} {getattr(scope.get('route'), 'path', '')}".rstrip())
                span.set_attribute("http.request.method", method)
                span.set_attribute("http.response.status_code", status)
                tracing.tell(span, failed=f"status {status}" if status >= 500 else "")

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        named = [value for name, value in scope["headers"] if name == b"x-request-id"]
        request_id = request_id_of(*named)
        # The next request of a pipelined connection begins in the context of the one before.
        TASK_ID.set(UNBOUND)
        REQUEST_ID.set(request_id)
        send = secured(send, request_id)
        if log.isEnabledFor(logging.INFO):
            send = _told(send, scope)
        path = _route_path(scope)
        if path not in PUBLIC and not pages.is_asset(scope["method"], path):
            try:
                if path == "/" and (token := session.token_of_url(scope)):
                    response = await self._exchange(scope, token)
                    await response(scope, receive, send)
                    return
                if self._identify is not None:
                    scope[CALLER] = self._identify(HTTPConnection(scope))
                else:
                    old = path in _OF_TROUBLE
                    scope[CALLER] = await self._door.admit(scope, may_be_old=old)
            except (Problem, FairlaneError) as error:
                problem = of_error(error)
                if pages.wants_page(scope, path):
                    response = pages.page(scope, problem.status_code, problem.headers)
                else:
                    response = problem.response()
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _exchange(self, scope: Scope, token: str) -> Any:
        """Return the redirect that takes the start-up URL's token out of the address bar."""
        self._door.check_local(scope)
        given = await self._door.believe(token.encode("latin-1", "replace"))
        return session.without_token(scope, token, self._door.left_s(given))


def _route_path(scope: Scope) -> str:
    """Return the path of a request below where the service is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :] or "/"
    return path


def request_id_of(*given: bytes) -> str:
    """Return the id of a request: the first sane one that came with it, else a new one."""
    for name in given:
        if _SANE.fullmatch(name):
            return name.decode()
    return f"{_process}-{next(_numbers)}"


def _told(send: Send, scope: Scope) -> Callable[[Message], Any]:
    """Return what tells of a request when its answer begins."""
    began = time.perf_counter()

    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            caller = scope.get(CALLER)
            who = {"caller": caller.role, "token_id": caller.token_id} if caller else {}
            took_ms = round((time.perf_counter() - began) * 1000, 3)
            line = "%s %s %d"
            asked = (scope["method"], ascii(scope["path"])[1:-1][:200], message["status"])
            log.info(line, *asked, extra={"took_ms": took_ms, **who})
        await send(message)

    return told


def secured(send: Send, request_id: str) -> Callable[[Message], Any]:
    """Return what sends an answer with the headers that every answer has."""
    always = (b"x-request-id", request_id.encode())

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = dict(message["headers"])
            if _NAMES.isdisjoint(given):
                more: Sequence[tuple[bytes, bytes]] = SECURITY
            else:
                more = [header for header in SECURITY if header[0] not in given]
            message = {**message, "headers": [*message["headers"], always, *more]}
        await send(message)

    return sent
