"""What every request passes on its way in, and every answer on its way out.

The rule: nothing but `/livez` is answered to whoever is not known, not even that a path is not
there (the dashboard's page comes with the 401, its scripts to anybody: they hold no data); and
every answer tells browsers to load nothing from elsewhere, to frame it nowhere, to
guess no type, to tell no address on, and to keep no copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlane.errors import FairlaneError
from fairlane.http import pages, session
from fairlane.http.caller import CALLER, Identify
from fairlane.http.door import Door
from fairlane.http.problem import Problem, of_error

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
        send = _secured(send)
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


def _secured(send: Send) -> Callable[[Message], Any]:
    async def secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = dict(message["headers"])
            if _NAMES.isdisjoint(given):
                more: Sequence[tuple[bytes, bytes]] = SECURITY
            else:
                more = [header for header in SECURITY if header[0] not in given]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return secured
