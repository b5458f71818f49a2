"""The service as an ASGI application, to be served or mounted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlane.client import AsyncClient
from fairlane.errors import StoreError
from fairlane.http import (
    abnormal,
    cancel,
    dead,
    devices,
    enqueue,
    events,
    file,
    files,
    health,
    levels,
    metrics,
    pages,
    problem,
    search,
    session,
    tasks,
)
from fairlane.http.caller import Identify, caller
from fairlane.http.door import Door
from fairlane.http.express import Express, Shortest
from fairlane.http.feed import Feed
from fairlane.http.gate import SOCKET_TIMEOUT_MS, Gate
from fairlane.http.guard import PUBLIC, Guard
from fairlane.http.head import Head
from fairlane.http.openapi import guarded, with_task_types
from fairlane.settings import Settings

_ROUTERS: Final = (
    tasks.router,
    file.router,
    search.router,
    cancel.router,
    devices.router,
    dead.router,
    levels.router,
    events.router,
    metrics.router,
    health.router,
    session.router,
)
#: Every route, those first that are asked most.
ROUTES: Final = (
    *enqueue.ROUTES,
    *abnormal.ROUTES,
    *files.ROUTES,
    *(route for router in _ROUTERS for route in router.routes if isinstance(route, APIRoute)),
)


class Service(FastAPI):
    """The application, behind its guard."""

    def build_middleware_stack(self) -> ASGIApp:
        """Return everything with the guard before it, also before what answers faults."""
        return self._guarded(Head(super().build_middleware_stack()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, by the short way if there is one."""
        if not self.user_middleware and self._express.leads(scope):
            scope["app"] = self
            await self._short_way(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    @cached_property
    def _express(self) -> Express:
        return Express({route.path: route for route in enqueue.ROUTES})

    @cached_property
    def _short_way(self) -> ASGIApp:
        ordinary = self._guarded(self._express)
        if self.state.identify is not None:
            return ordinary
        return Shortest(ordinary, self.state.door, self.state.gate)

    def _guarded(self, app: ASGIApp) -> ASGIApp:
        return Guard(app, self.state.door, self.state.identify)

    def openapi(self) -> dict[str, Any]:
        """Return the description of the service."""
        if self.openapi_schema is None:
            self.openapi_schema = guarded(super().openapi(), PUBLIC)
        return self.openapi_schema


def create_app(settings: Settings | None = None, *, identify: Identify | None = None) -> FastAPI:
    """Return the HTTP service for the store of `settings`, those of the environment by default.

    It connects when it is first asked, so it can be mounted in another application, whose lifespan
    does not reach it. `identify` says who calls, in place of tokens. Without a key for tokens only
    callers on this machine are let in, by the token `app.state.door.start_token`. Raises
    InvalidSettings.
    """
    settings = settings or Settings.from_env()
    patience_ms = min(settings.socket_timeout_ms, SOCKET_TIMEOUT_MS)
    client = AsyncClient(replace(settings, socket_timeout_ms=patience_ms))

    gate = Gate(client)
    feed = Feed(gate)
    door = Door(settings, gate)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await feed.close()
        await door.close()
        await client.close()

    app = Service(
        title="fairlane",
        summary="A fair, per-device task scheduler",
        version=version("fairlane"),
        lifespan=lifespan,
        # The pages of the documentation would load scripts of another host.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        # It would send a caller to the host that his own request names.
        redirect_slashes=False,
        separate_input_output_schemas=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.gate = gate
    app.state.feed = feed
    app.state.metrics = metrics.Metrics(gate)
    app.state.door = door
    app.state.depot = files.Depot(settings)
    app.state.identify = identify
    app.state.routes = (*ROUTES, *pages.ROUTES)
    problem.install(app)
    app.router.routes[:0] = [*enqueue.ROUTES, *abnormal.ROUTES, *files.ROUTES]
    for router in _ROUTERS:
        app.include_router(router)
    app.router.routes += pages.ROUTES
    app.add_api_route("/openapi.json", _openapi, include_in_schema=False)
    return app


async def _openapi(request: Request) -> JSONResponse:
    """Describe the service to whoever may call it."""
    caller(request)
    gate: Gate = request.app.state.gate
    with suppress(StoreError):
        await gate.ask(gate.client.ping())
    schema = with_task_types(request.app.openapi(), list(gate.client.settings.lane_by_type))
    root_path = request.scope.get("root_path", "").rstrip("/")
    return JSONResponse({**schema, "servers": [{"url": root_path}]} if root_path else schema)
