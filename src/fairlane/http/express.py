"""The short way to the routes that are asked most.

The rule: it changes the way and nothing else. A route that is reached here answers what it answers
through FastAPI, errors included; an application that was given middleware of its own has no short
way, since it would lead past that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fairlane.errors import FairlaneError
from fairlane.http.problem import Problem, of_error, of_fault


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


def _route_path(scope: Any) -> str:
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(f"{root}/") else path
