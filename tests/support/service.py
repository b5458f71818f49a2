"""The service over a real store, as an ASGI application or served by uvicorn in a process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import redis
from starlette.applications import Starlette
from starlette.routing import Mount

from fairlane import Client, Settings
from fairlane.http import create_app
from support.eventually import eventually
from support.processes import COMMAND, Program


class Service:
    """The application, called without a socket, and a client of the same store."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.settings = Settings(store_url=url, **settings)
        self.store = Client(self.settings)
        self.app = create_app(self.settings)
        self._runner = asyncio.Runner()
        self.token: str = self.app.state.door.start_token
        self._talk_to(self.app)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request; every answer must be strict JSON."""
        return self._runner.run(self._ask(method, path, **options))

    def ask_all(self, *requests: tuple[str, str, dict[str, Any]]) -> list[httpx.Response]:
        """Send requests at once."""

        async def together() -> list[httpx.Response]:
            return await asyncio.gather(*(self._ask(*one[:2], **one[2]) for one in requests))

        return self._runner.run(together())

    def mount(self, path: str) -> None:
        """Mount the application in another one, which knows nothing of it."""
        self._talk_to(Starlette(routes=[Mount(path, self.app)]))

    def call_from(self, host: str) -> None:
        """Call from another machine."""
        self._talk_to(self.app, host)

    def age(self, *, seconds: float) -> None:
        """Let the time pass that makes what the door has read old."""
        door = self.app.state.door
        door._revocations._read_at -= seconds
        door._looked_at -= seconds

    def forget_cookies(self) -> None:
        """Send no cookie but those that a test gives."""
        self._http.cookies.clear()

    def _talk_to(self, app: Any, host: str = "127.0.0.1") -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(host, 1))
        self._http = httpx.AsyncClient(
            transport=transport, base_url="http://service", headers=bearer(self.token)
        )

    def enqueue(self, **fields: Any) -> httpx.Response:
        """Send a task; what is not given is a usual one."""
        task = {"mac": "02:00:00:00:00:01", "task_type": "text", "data": {}, **fields}
        return self.ask("POST", "/v1/tasks", json=task)

    def send(self, raw: bytes, **headers: str) -> httpx.Response:
        """Send bytes as a task."""
        headers = {"content-type": "application/json", **headers}
        return self.ask("POST", "/v1/tasks", content=raw, headers=headers)

    @contextmanager
    def raw(self) -> Iterator[Any]:
        """Give a bare connection to the store."""
        connection: Any = redis.Redis.from_url(
            self.settings.store_url, decode_responses=True, encoding_errors="surrogateescape"
        )
        with closing(connection):
            yield connection

    def close(self) -> None:
        """Close everything."""
        self._runner.run(self._http.aclose())
        self._runner.run(self.app.state.feed.close())
        self._runner.run(self.app.state.door.close())
        self._runner.run(self.app.state.gate.client.close())
        self._runner.close()
        self.store.close()

    async def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        return await self._http.request(method, path, **options)


@contextmanager
def served(
    url: str, folder: Path, *, under: Sequence[str] = (), **settings: Any
) -> Iterator[httpx.Client]:
    """Serve a store by `fairlane api` in a process, run by the command `under`; give a client."""
    environ = Settings(store_url=url, data_dir=folder, **settings).environ()
    command = [*under, *COMMAND, "api", "--port=0"]
    with Program(command, folder / "api.log", environ, watched=False) as api:
        eventually(lambda: "http://" in api.output(), 30.0)
        url = next(word for word in api.output().split() if word.startswith("http://"))
        base, _, token = url.partition("/?token=")
        with httpx.Client(base_url=base, timeout=30.0, headers=bearer(token)) as http:
            eventually(lambda: http.get("/livez").status_code == 200, 30.0)
            yield http


def bearer(token: str) -> dict[str, str]:
    """Return the headers that send a token, if there is one."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def is_problem(answer: httpx.Response, status: int, code: str) -> bool:
    """Prove that an answer is a problem with this status and code, and told as RFC 9457 says."""
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == status
    assert told["type"] == "urn:fairlane:problem:" + code.lower().replace("_", "-")
    assert told["title"]
    assert told["detail"]
    assert told["detail"] != told["title"], "it says nothing more"
    assert (status in (429, 503)) == ("retry-after" in answer.headers)
    return True
