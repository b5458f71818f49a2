"""What went wrong, as RFC 9457 tells it.

The rule: every error answers `application/problem+json`. Its `code` is stable and is that of
`errors.py`, or of this room for what only HTTP knows (a body that is no JSON, a wrong method);
`type` is made from the code; `detail` is for people and tells nothing of the server's insides.
What may be tried again later says when, in `Retry-After`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Final, get_args

import msgspec
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from fairlane import errors
from fairlane.errors import FairlaneError
from fairlane.model import Refusal

log = logging.getLogger("fairlane.http")

MEDIA_TYPE: Final = "application/problem+json"
#: How long to leave a store alone that is in trouble.
STORE_RETRY_S: Final = 2
_TYPE: Final = "urn:fairlane:problem:"
_encode: Final = msgspec.json.Encoder().encode

#: The most special class that an error is of decides.
_STATUS: Final[Mapping[type[FairlaneError], int]] = {
    errors.InvalidInput: 422,
    errors.InvalidToken: 401,
    errors.PayloadTooLarge: 413,
    errors.InvalidSettings: 503,
    errors.InvalidHandler: 503,
    errors.NotFound: 404,
    # A task names it, no path does.
    errors.FileNotKnown: 422,
    errors.Conflict: 409,
    errors.IdempotencyConflict: 422,
    errors.LimitsChanged: 412,
    errors.ConfigMismatch: 503,
    errors.StoreError: 503,
    errors.ClockRefused: 503,
}
_TITLES: Final[Mapping[str, str]] = {
    "CROSS_ORIGIN": "The request comes from another origin's page.",
    "FILE_STORE_UNAVAILABLE": "The file store does not take files now.",
    "FORBIDDEN": "The caller may not do this.",
    "HEADER_TWICE": "A header stands twice.",
    "HEAD_TOO_LARGE": "The request's head is too large.",
    "HEAD_TOO_SLOW": "The request's head did not come in time.",
    "IMAGE_TOO_LARGE": "The image has too many pixels.",
    "INTERNAL": "The server has a fault.",
    "INVALID_HTTP": "What was sent is no HTTP.",
    "INVALID_REQUEST": "A parameter or field of the request is not valid.",
    "BODY_TOO_LARGE": "The body is too large.",
    "BODY_TOO_SLOW": "The body did not come in time.",
    "MALFORMED_JSON": "The body is no strict JSON.",
    "METHOD_NOT_ALLOWED": "The path is there, the method is not.",
    "NOT_READY": "No task can be accepted and kept.",
    "PATH_NOT_FOUND": "Nothing is at this path.",
    "TOO_MANY_CONNECTIONS": "Every connection has a request in work.",
    "TOO_MANY_FILES": "Many files come in now.",
    "TOO_MANY_REQUESTS": "The token asks too often.",
    "UNAUTHORIZED": "The caller is not known.",
    "UNKNOWN_TRANSFER_CODING": "The body is encoded in a way that is not known here.",
    "UNSUPPORTED_MEDIA_TYPE": "The body's content type is not taken here.",
    "WATERMARK_NOT_FOUND": "No watermark was published lately.",
}
_CODES: Final = {404: "PATH_NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}


class Problem(HTTPException):
    """An answer that tells what went wrong; raise it anywhere in a route."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        retry_after_s: int | None = None,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(status, detail, {**(headers or {})})
        self.code = code
        self.members = members
        if retry_after_s is not None:
            self.headers = {**(self.headers or {}), "Retry-After": str(retry_after_s)}

    def told(self) -> dict[str, Any]:
        """Return the members of the problem."""
        return {
            "type": _TYPE + self.code.lower().replace("_", "-"),
            "title": _title(self.code),
            "status": self.status_code,
            "detail": self.detail,
            "code": self.code,
            **self.members,
        }

    def response(self) -> Response:
        """Return the problem as a response."""
        return Response(_encode(self.told()), self.status_code, self.headers, MEDIA_TYPE)


def problem_of(error: FairlaneError) -> Problem:
    """Return what an error of fairlane is over HTTP."""
    status = next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 500)
    if status < 500:
        return Problem(status, error.code, str(error))
    # What a store says names hosts and folders, which are for the log and not for the caller.
    detail = f"the log of the service has the cause; try again in {STORE_RETRY_S} s"
    return Problem(status, error.code, detail, retry_after_s=STORE_RETRY_S)


def problem_of_refusal(refusal: Refusal, *, refuses_all: bool) -> Problem:
    """Return a refusal over HTTP: 429 is for the caller's own load, 503 for everybody's.

    `refuses_all` says that admission is the document's, which refuses everybody at once.
    """
    is_own = refusal.reason not in ("global_full", "store_full") and not refuses_all
    retry_after_s = max(1, ceil(refusal.retry_after_ms / 1000))
    return Problem(
        429 if is_own else 503,
        "REFUSED",
        f"{refusal.reason}: {refusal.pending} pending, limit {refusal.limit}; "
        f"try again in {retry_after_s} s",
        retry_after_s=retry_after_s,
        reason=refusal.reason,
        pending=refusal.pending,
        limit=refusal.limit,
        retry_after_seconds=retry_after_s,
        task_id=refusal.task_id,
        mac=refusal.mac,
    )


def of_error(error: Problem | FairlaneError) -> Problem:
    """Return an error as a problem; of the server's own troubles the log has the cause."""
    if isinstance(error, Problem):
        return error
    problem = problem_of(error)
    if problem.status_code >= 500:
        log.warning("%s: %s", error.code, error)
    return problem


def install(app: FastAPI) -> None:
    """Let every error of an application answer as a problem."""
    app.add_exception_handler(Problem, _of_problem)
    app.add_exception_handler(FairlaneError, _of_fairlane)
    app.add_exception_handler(RequestValidationError, _of_request)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Exception, of_fault)


async def _of_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _of_fairlane(_: Request, error: Exception) -> Response:
    assert isinstance(error, FairlaneError)
    return of_error(error).response()


async def _of_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = [
        {"where": ".".join(map(str, found["loc"])), "what": _what(request, found)}
        for found in error.errors()[:20]
    ]
    first = wrong[0] if wrong else {"where": "request", "what": "not valid"}
    detail = f"{first['where']}: {first['what']}".encode(errors="replace").decode()
    return Problem(422, "INVALID_REQUEST", detail[:300]).response()


def _what(request: Request, found: Mapping[str, Any]) -> str:
    """Return what is wrong; of a name that is not known also those that are."""
    if found["type"] == "extra_forbidden" and (names := _names_at(request, found["loc"])):
        return f"not known; known are {', '.join(names)}"
    return str(found["msg"]).removeprefix("Value error, ")


def _names_at(request: Request, where: Sequence[Any]) -> list[str]:
    """Return the names of the parameters or fields of a route, beside the one at a place."""
    dependant = request.scope["route"].dependant
    takers = dependant.query_params if where[0] == "query" else dependant.body_params
    shape: Any = takers[0].field_info.annotation if takers else None
    for name in where[1:-1]:
        field = getattr(shape, "model_fields", {}).get(name)
        kinds = get_args(field.annotation) or (field.annotation,) if field else ()
        shape = next((kind for kind in kinds if hasattr(kind, "model_fields")), None)
    return [*getattr(shape, "model_fields", {})]


async def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        error.headers = {"Allow": ", ".join(_methods(request))}
    code = _CODES.get(error.status_code, f"HTTP_{error.status_code}")
    detail = f"{request.method} {ascii(request.url.path)[1:-1][:200]}: {error.detail}"
    return Problem(error.status_code, code, detail, headers=error.headers).response()


def _methods(request: Request) -> list[str]:
    """Return the methods of a path: each of its routes knows its own only."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    routes = request.app.state.routes
    found = {m for route in routes if route.path_regex.match(path) for m in route.methods}
    return sorted(found | ({"HEAD"} if "GET" in found else set()))


async def of_fault(request: Request, error: Exception) -> Response:
    """Return what is told of an error that nobody foresaw; the log has the rest."""
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return Problem(500, "INTERNAL", "the server has a fault, and its log has the cause").response()


def _title(code: str) -> str:
    if title := _TITLES.get(code):
        return title
    known = FairlaneError.codes.get(code)
    about = (known.__doc__ if known else None) or "Something went wrong."
    return about.splitlines()[0].partition(";")[0].rstrip(".") + "."
