"""A RabbitMQ of a test's own, which can be stopped and started again with its queues."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from kombu import Connection

from support.eventually import eventually
from support.ports import free_ports
from support.processes import Program

#: Debian's program itself: the one on the path changes to a user and a folder of its own.
PLACE: Final = "/usr/lib/rabbitmq/bin"


class Rabbit:
    """A RabbitMQ on free loopback ports, which it keeps."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("rabbitmq-server", path=PLACE)
        if program is None:
            pytest.skip(f"no rabbitmq-server in {PLACE}")
        port, distribution, self._mapper = free_ports(3)
        self._command, self._folder = [program], folder
        self._environ = {
            "HOME": str(folder),
            "RABBITMQ_NODENAME": f"fairlane{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._mapper),
        }
        self.url: Final = f"amqp://guest:guest@127.0.0.1:{port}//"
        self._program: Program | None = None

    def start(self) -> None:
        """Start it, with the durable queues that it has."""
        self._program = Program(self._command, self._folder / "rabbitmq.log", self._environ)
        eventually(self.answers, 90.0, 0.2)

    def answers(self) -> bool:
        """Whether it can be talked to."""
        try:
            with Connection(self.url, connect_timeout=1) as link:
                link.connect()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """Ask it to end."""
        assert self._program is not None
        self._program.stop(60.0)
        self._program = None

    def kill(self) -> None:
        """End it without asking (-9)."""
        assert self._program is not None
        self._program.end()
        self._program = None

    def end(self) -> None:
        """End it and Erlang's port mapper, which is a daemon and not of its session."""
        with suppress(AssertionError):
            self.stop()
        command = ["epmd", "-port", str(self._mapper), "-kill"]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)


@contextmanager
def rabbit(folder: Path) -> Iterator[Rabbit]:
    """Give a RabbitMQ; gone with all of it."""
    server = Rabbit(folder)
    try:
        server.start()
        yield server
    finally:
        server.end()
