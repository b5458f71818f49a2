"""A server with a port and data of its own that a test kills, freezes, empties and starts again.

The rule: it keeps its port and, unless it is emptied, its data; its process ends with the tests.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from support.eventually import eventually
from support.ports import free_ports
from support.processes import Program
from support.servers import KINDS

_OPTIONS: Final = (
    "--bind 127.0.0.1 --protected-mode no --appendonly yes --appendfsync everysec "
    "--repl-diskless-sync-delay 0 --repl-ping-replica-period 1 --enable-debug-command local"
)


class Node:
    """A server that can be killed, frozen and started again."""

    def __init__(self, kind: str, folder: Path, port: int, password: str, *options: str) -> None:
        self.port = port
        self.folder = folder
        folder.mkdir()
        self._command = [*command_of(kind), "--port", str(port), "--dir", str(folder)]
        self._command += [*_OPTIONS.split(), *options]
        if password:
            self._command += ["--requirepass", password, "--masterauth", password]
        self.redis: Any = redis.Redis(
            port=port,
            password=password or None,
            decode_responses=True,
            encoding_errors="surrogateescape",
            retry=Retry(NoBackoff(), 0),
            socket_timeout=10.0,
        )
        self.url = f"redis://127.0.0.1:{port}/0"
        self.broker_url = f"redis://127.0.0.1:{port}/1"
        self._program: Program | None = None

    def raw(self, db: int = 0) -> Any:
        """Return a connection to a database, of its own."""
        url = self.url.removesuffix("/0") + f"/{db}"
        return redis.Redis.from_url(url, decode_responses=True, encoding_errors="surrogateescape")

    def start(self) -> None:
        """Start the server with the data that it has."""
        self._program = Program(self._command, self.folder / "server.log", {})
        eventually(self.answers, 20.0)

    def answers(self) -> bool:
        """Whether the server can be talked to."""
        try:
            return bool(self.redis.ping())
        except redis.RedisError:
            return False

    def role(self) -> str:
        """Return what the server says that it is."""
        return str(self.replication()["role"])

    def replication(self) -> dict[str, Any]:
        """Return what the server says of its replication; a demotion closes its connections."""
        try:
            told: dict[str, Any] = self.redis.info("replication")
        except redis.ConnectionError:
            told = self.redis.info("replication")
        return told

    def kill(self) -> None:
        """Kill the server (-9)."""
        assert self._program is not None
        self._program.kill()
        self._program.end()
        self._program = None

    def stop(self) -> None:
        """Ask the server to end, which syncs its data."""
        assert self._program is not None
        self._program.send(signal.SIGTERM)
        self._program.wait(30.0)
        self._program.end()
        self._program = None

    def empty(self) -> None:
        """Remove the data of a server that was stopped."""
        assert self._program is None
        for part in ("appendonlydir", "dump.rdb"):
            place = self.folder / part
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let the server stand still for a while: it accepts, and answers nothing."""
        assert self._program is not None
        pid = self._program.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        """End the server, if it runs."""
        self.redis.close()
        if self._program is not None:
            self._program.end()


def command_of(kind: str, *more: str) -> list[str]:
    """Return the command of a server of a kind; without its program, skip the test."""
    made = KINDS[kind]
    program = made.program()
    if program is None:
        absent = pytest.fail if os.environ.get("CI") else pytest.skip
        absent(f"{kind}: no {made.called} on this machine; {made.advice}")
    # exec -a: the program is told the name that it is called by.
    return ["bash", "-c", 'exec -a "$0" "$@"', made.called, str(program), *more]


@contextmanager
def noded(kind: str = "valkey9", *options: str, folder: Path | None = None) -> Iterator[Node]:
    """Give a server that can be started again; gone with its data."""
    parent = Path(tempfile.mkdtemp(prefix="fairlane-test-", dir=folder))
    node = Node(kind, parent / "node", free_ports(1)[0], "", *options)
    try:
        node.start()
        yield node
    finally:
        node.end()
        shutil.rmtree(parent)
