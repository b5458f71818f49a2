"""`make bench`, its part on HTTP: what POST /v1/tasks costs beside the least that could be written.

The rule: the three take turns on one store and the same load, each in a process of its own, and
what is told are medians of rounds and of ratios within a round. The load comes from this process:
connections that stay open, one request at a time on each. On two cores it takes a good part of one,
so the rates are those of this machine, and the ratios what can be compared.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final, cast

import redis
import rich_click as click
import uvloop
from rich.console import Console
from rich.progress import track

from fairlane import Settings, watchdog
from fairlane.embedded import Embedded
from fairlane.grant import Grant
from fairlane.http.serve import listen
from fairlane.keyring import Keyring
from fairlane.settings import other_variables
from fairlane.tokens import Claims, sign

_PROGRAM: Final = Path(__file__).parent / "programs" / "http_apps.py"
_NO_LIMIT: Final = 10**9
_DEVICES: Final = 1_000
_BATCH: Final = 100
#: Known to all who read this, and good for servers that live for seconds.
_SECRET: Final = "0123456789abcdef" * 4


@dataclass(frozen=True)
class Case:
    """What serves, and how many tasks a request sends."""

    name: str
    app: str
    batch: int = 1


@dataclass
class Ran:
    """What one run came to."""

    tasks_per_s: float
    p50_ms: float
    p99_ms: float


CASES: Final = (
    Case("fairlane", "fairlane"),
    Case("bare ASGI + msgspec", "bare"),
    Case("plain FastAPI", "plain"),
    Case(f"fairlane, batches of {_BATCH}", "fairlane", _BATCH),
)


class Caller(asyncio.Protocol):
    """A connection that sends a request as soon as the last one was answered."""

    def __init__(self, requests: Sequence[bytes], first: int, took_s: list[float]) -> None:
        self._requests, self._next, self._took_s = requests, first, took_s
        self._transport: asyncio.Transport | None = None
        self._answer = b""
        self._began = 0.0
        self.is_over = False
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        self._send()

    def data_received(self, data: bytes) -> None:
        """Take an answer, and send the next request."""
        self._answer += data
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if not found:
            return
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        if len(body) < size:
            return
        if not head.startswith((b"HTTP/1.1 202", b"HTTP/1.1 200")):
            self.ended.set_exception(RuntimeError(self._answer[:400].decode()))
            return
        self._took_s.append(time.perf_counter() - self._began)
        self._answer = b""
        if self.is_over:
            self.ended.set_result(None)
        else:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that it was cut."""
        if not self.ended.done():
            self.ended.set_exception(RuntimeError(f"the server hung up: {exc}"))

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()

    def _send(self) -> None:
        assert self._transport is not None
        self._began = time.perf_counter()
        self._transport.write(self._requests[self._next % len(self._requests)])
        self._next += 1


@click.command(short_help="Measure POST /v1/tasks.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--seconds", type=click.FloatRange(min=0.1), default=5.0, show_default=True)
@click.option("--connections", type=click.IntRange(min=1), default=64, show_default=True)
@click.option("--quick", is_flag=True, help="One short round: to see that it works.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def main(*, rounds: int, seconds: float, connections: int, quick: bool, as_json: bool) -> None:
    """Measure POST /v1/tasks beside a bare ASGI endpoint and a plain FastAPI route."""
    if quick:
        rounds, seconds, connections = 1, 0.5, 16
    ran: dict[str, list[Ran]] = {case.name: [] for case in CASES}
    turns = [
        case for number in range(rounds) for case in (CASES if number % 2 == 0 else CASES[::-1])
    ]
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as folder:
        store = Embedded(Path(folder)).start()
        try:
            with redis.Redis.from_url(store.url) as raw:
                for case in track(turns, "rounds", console=console, transient=True):
                    raw.flushdb()
                    with _serving(case.app, store.url) as port:
                        uvloop.run(_load(case, port, 0.5, connections))
                        ran[case.name].append(uvloop.run(_load(case, port, seconds, connections)))
        finally:
            store.stop()
    if as_json:
        click.echo(json.dumps({name: [*map(asdict, runs)] for name, runs in ran.items()}, indent=2))
    else:
        click.echo(_markdown(ran, connections))


async def _load(case: Case, port: int, seconds: float, connections: int) -> Ran:
    token = _token()
    requests = [_request(case, number, token) for number in range(_DEVICES)]
    took_s: list[float] = []
    loop = asyncio.get_running_loop()
    # Batches are for few who send much.
    connections = max(1, connections // 16) if case.batch > 1 else connections
    callers = []
    for number in range(connections):
        first = number * (_DEVICES // connections)
        _, caller = await loop.create_connection(
            partial(Caller, requests, first, took_s), "127.0.0.1", port
        )
        callers.append(caller)
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    for caller in callers:
        caller.is_over = True
    async with asyncio.timeout(60):
        await asyncio.gather(*(caller.ended for caller in callers))
    per_s = len(took_s) * case.batch / (time.perf_counter() - began)
    for caller in callers:
        caller.close()
    cuts = statistics.quantiles(took_s, n=100)
    return Ran(per_s, cuts[49] * 1000, cuts[98] * 1000)


def _request(case: Case, number: int, token: str) -> bytes:
    tasks = [
        {
            "mac": f"02:00:00:00:{at >> 8 & 255:02x}:{at & 255:02x}",
            "task_type": "text",
            "data": {"text": "call 138-1234-5678, or write to a@example.com", "n": at},
        }
        for at in range(number, number + case.batch)
    ]
    body = json.dumps(tasks if case.batch > 1 else tasks[0]).encode()
    path = "/v1/tasks:batch" if case.batch > 1 else "/v1/tasks"
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {token}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _token() -> str:
    """Return a producer's token, by the secret that every server here has."""
    settings = Settings(token_secret=_SECRET)
    key = Keyring(settings).signer
    assert key is not None
    claims = Claims("bench", Grant("producer", name="bench"), 0, 2**33)
    return sign(claims, key, settings.token_audience)


@contextmanager
def _serving(app: str, url: str) -> Iterator[int]:
    """Serve an application in a process of its own; give its port."""
    settings = Settings(
        store_url=url,
        max_total_pending=_NO_LIMIT,
        max_per_mac_pending=_NO_LIMIT,
        token_secret=_SECRET,
    )
    with listen("127.0.0.1", 0) as listener:
        command = [sys.executable, str(_PROGRAM), app, str(listener.fileno())]
        server = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, *command],
            stdin=subprocess.PIPE,
            env={**other_variables(), **settings.environ()},
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        try:
            # The socket listens already: who connects waits for the server.
            yield listener.getsockname()[1]
            if server.poll() is not None:
                raise click.ClickException(f"{app} ended with status {server.returncode}")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(15)


def _markdown(ran: dict[str, list[Ran]], connections: int) -> str:
    ours = ran[CASES[0].name]
    lines = [
        f"POST /v1/tasks, one process, {connections} connections, {os.cpu_count()} cores, "
        f"{len(ours)} rounds in turns:",
        "",
        "| endpoint | tasks a second | p50 | p99 | fairlane to it |",
        "|---|---|---|---|---|",
    ]
    for case in CASES:
        runs = ran[case.name]
        ratio = statistics.median(
            mine.tasks_per_s / other.tasks_per_s for mine, other in zip(ours, runs, strict=True)
        )
        per_s, p50, p99 = (
            statistics.median(getattr(run, name) for run in runs)
            for name in ("tasks_per_s", "p50_ms", "p99_ms")
        )
        told = f"{ratio:.2f}" if case.batch == 1 else "–"
        lines.append(f"| {case.name} | {per_s:,.0f} | {p50:.1f} ms | {p99:.1f} ms | {told} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
