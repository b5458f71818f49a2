"""Routes on the way of which nothing of FastAPI runs.

The rule: such a route reads and answers by itself, and stands in the OpenAPI like the others.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import request_response


class BareRoute(APIRoute):
    """A route of Starlette that stands in FastAPI's OpenAPI."""

    def __init__(
        self, path: str, endpoint: Callable[[Request], Coroutine[Any, Any, Response]], **more: Any
    ) -> None:
        super().__init__(path, endpoint, **more)
        self.app = request_response(endpoint)
