"""The short way to the routes that are asked most.

The rule: it changes the way and nothing else. A route that is reached here answers what it answers
through FastAPI, errors included; an application that was given middleware of its own has no short
way, since it would lead past that.

A task with a token that was seen before goes a shorter one still: one function, from the head to
the answer. Whatever is not as usual in its head (a header twice, a cookie, a token that is new)
takes the ordinary way from its beginning.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from typing import Any, Final

from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlane import tracing
from fairlane.errors import FairlaneError
from fairlane.http import body, enqueue
from fairlane.http.caller import Caller
from fairlane.http.door import Door
from fairlane.http.gate import Gate
from fairlane.http.guard import SECURITY, log, request_id_of, secured
from fairlane.http.problem import Problem, of_error, of_fault
from fairlane.http.whole import write_whole
from fairlane.logs import REQUEST_ID, TASK_ID, UNBOUND

_TASKS: Final = "/v1/tasks"
_JSON: Final = (b"content-type", b"application/json")
_ALWAYS: Final = b"".join(b"%b: %b\r\n" % field for field in (_JSON, *SECURITY))


class Express:
    """Call the endpoint of a path, the way that `leads` says it has."""

    def __init__(self, routes: Mapping[str, APIRoute]) -> None:
        self._routes = routes

    def leads(self, scope: Scope) -> bool:
        """Whether there is a short way for a request: it is a POST to one of the paths."""
        return (
            scope["type"] == "http"
            and scope["method"] == "POST"
            and _route_path(scope) in self._routes
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request to which there is a short way."""
        scope["route"] = route = self._routes[_route_path(scope)]
        request = Request(scope, receive, send)
        try:
            response: Response = await route.endpoint(request)
        except (Problem, FairlaneError) as error:
            response = of_error(error).response()
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - the outermost: whatever it is, it is answered
            response = await of_fault(request, error)
        await response(scope, receive, send)


class Shortest:
    """Store a task for a caller that is known; `otherwise` serves what is not as usual."""

    def __init__(self, otherwise: ASGIApp, door: Door, gate: Gate) -> None:
        self._otherwise = otherwise
        self._door = door
        self._gate = gate

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve a POST to one of the paths."""
        headers = body.headers(scope)
        if (
            scope["path"] != _TASKS
            or scope.get("root_path")
            or len(headers) < len(scope["headers"])
            or log.isEnabledFor(logging.INFO)
            or tracing.is_on()
            or (sender := self._door.knows(scope, headers)) is None
        ):
            return self._otherwise(scope, receive, send)
        return self._store(sender, headers, scope, receive, send)

    async def _store(
        self,
        sender: Caller,
        headers: Mapping[bytes, bytes],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        given = headers.get(b"x-request-id")
        request_id = request_id_of() if given is None else request_id_of(given)
        REQUEST_ID.set(request_id)
        # The next request of a pipelined connection begins in the context of the one before.
        TASK_ID.set(UNBOUND)
        try:
            self._door.count(sender)
            receipt = await enqueue.store(self._gate, sender, scope, receive)
            told, status = enqueue.answer_of(receipt)
        except (Problem, FairlaneError) as error:
            response = of_error(error).response()
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - the outermost: whatever it is, it is answered
            response = await of_fault(Request(scope), error)
        else:
            location, named = f"{_TASKS}/{receipt.task_id}".encode(), request_id.encode()
            size = len(told)
            fields = b"content-length: %d\r\nlocation: %b\r\nx-request-id: %b\r\n%b" % (
                size,
                location,
                named,
                _ALWAYS,
            )
            if not write_whole(send, status, fields, told):
                own: Any = [
                    _JSON,
                    (b"content-length", b"%d" % size),
                    (b"location", location),
                    (b"x-request-id", named),
                    *SECURITY,
                ]
                await send({"type": "http.response.start", "status": status, "headers": own})
                await send({"type": "http.response.body", "body": told})
            return
        await response(scope, receive, secured(send, request_id))


def _route_path(scope: Any) -> str:
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(f"{root}/") else path
