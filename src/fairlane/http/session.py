"""/v1/session: a browser's session, which is its token in a cookie.

The rule: no script can read the cookie, and no other origin can use it: it is HttpOnly and
SameSite=Strict, a write needs a request of our own pages, and so does a read by a script. The token
of the start-up URL becomes the cookie, and a redirect takes it out of the address bar.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import APIRouter, Request, Response
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse

from fairlane.grant import Role
from fairlane.http.answer import Answer, when
from fairlane.http.caller import Caller, caller
from fairlane.http.openapi import problems
from fairlane.http.problem import Problem

router = APIRouter(tags=["session"])

#: A browser that is left alone asks for a token again after this.
SESSION_S: Final = 12 * 3_600
_READS: Final = ("GET", "HEAD", "OPTIONS")


class Session(Answer):
    """Who the caller is, and until when."""

    role: Role
    mac: str
    site: str
    name: str
    expires_at: str | None


@router.post(
    "/v1/session",
    summary="Keep the token of this request in a cookie that no script can read.",
    responses=problems(401, 403, 429, 503),
)
async def begin_session(request: Request, response: Response) -> Session:
    """Answer who the caller is, and set the cookie."""
    given = caller(request)
    token = request.headers.get("authorization", "").partition(" ")[2].strip()
    if token:
        set_cookie(response, request.scope, token, request.app.state.door.left_s(given))
    return _session(given)


@router.get(
    "/v1/session", summary="Tell who the caller is.", responses=problems(401, 403, 429, 503)
)
async def inspect_session(request: Request) -> Session:
    """Answer who the caller is."""
    return _session(caller(request))


@router.delete(
    "/v1/session",
    summary="Forget the cookie.",
    status_code=204,
    responses=problems(401, 403, 429, 503),
)
async def end_session(request: Request) -> Response:
    """Take the cookie back."""
    caller(request)
    response = Response(status_code=204)
    name, path = cookie_name(request.scope), _path(request.scope)
    response.delete_cookie(name, path, httponly=True, samesite="strict")
    return response


def cookie_name(scope: Any) -> str:
    """Return the cookie's name: browsers send a cookie to every port of a host."""
    server = scope.get("server")
    port = server[1] if server else None
    return f"fairlane_session_{port}" if port else "fairlane_session"


def set_cookie(response: Response, scope: Any, token: str, left_s: int) -> None:
    """Keep a token in the cookie, as long as it holds and no longer than `SESSION_S`."""
    response.set_cookie(
        cookie_name(scope),
        token,
        max_age=min(SESSION_S, left_s),
        path=_path(scope),
        # Who claims falsely that a proxy speaks TLS gets a cookie that is sent less.
        secure=_scheme(scope) == "https",
        httponly=True,
        samesite="strict",
    )


def token_of_url(scope: Any) -> str:
    """Return the token that a start-up URL carries, or nothing.

    Only one that somebody typed or clicked here: another site's link must not say who one is.
    """
    if scope["method"] not in ("GET", "HEAD") or b"token=" not in scope["query_string"]:
        return ""
    if Headers(scope=scope).get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return ""
    query: str = scope["query_string"].decode("latin-1")
    return dict(parse_qsl(query)).get("token", "")


def without_token(scope: Any, token: str, left_s: int) -> Response:
    """Return the redirect to the same page with the token in the cookie."""
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    rest = urlencode([(name, value) for name, value in query if name != "token"])
    response = RedirectResponse(_path(scope) + (f"?{rest}" if rest else ""), 303)
    set_cookie(response, scope, token, left_s)
    return response


def check_origin(scope: Any) -> None:
    """Raise a 403 for a request that comes with a cookie, but not from our own pages."""
    headers = Headers(scope=scope)
    is_read = scope["method"] in _READS
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        # Whoever follows a link only looks; a script of another origin could go on from there.
        looks = site == "none" or headers.get("sec-fetch-mode") == "navigate"
        allowed = site == "same-origin" or (is_read and looks)
    elif origin is not None:
        allowed = _is_ours(origin, scope, headers)
    else:
        allowed = is_read
    if not allowed:
        raise Problem(
            403,
            "CROSS_ORIGIN",
            "a session's cookie is for our own pages; programs send `Authorization: Bearer`",
        )


def _is_ours(origin: str, scope: Any, headers: Headers) -> bool:
    """Whether an origin is this service as the browser reached it: scheme and host."""
    try:
        parts = urlsplit(origin.lower())
    except ValueError:
        return False
    host = headers.get("host", "").lower()
    return host != "" and (parts.scheme, parts.netloc) == (_scheme(scope), host)


def _scheme(scope: Any) -> str:
    """Return the scheme that a browser used. No other site's page can send the proxy's header."""
    forwarded = Headers(scope=scope).get("x-forwarded-proto", "")
    return "https" if forwarded == "https" else str(scope.get("scheme", "http"))


def _path(scope: Any) -> str:
    root: str = scope.get("root_path", "")
    return f"{root.rstrip('/')}/"


def _session(given: Caller) -> Session:
    return Session(
        role=given.role,
        mac=given.mac,
        site=given.site,
        name=given.name,
        expires_at=when(given.expires_s * 1000),
    )
