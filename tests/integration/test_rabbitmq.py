"""Celery's broker may be a RabbitMQ: the store stays the truth, only hints travel elsewhere."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kombu import Connection

from fairlane import TaskType
from fairlane.model import TaskState
from support.eventually import eventually
from support.processes import Program
from support.store import mac
from support.system import DISPATCH, TEXT, running

#: Debian's program itself: the one on the path changes to a user and a folder of its own.
PLACE = "/usr/lib/rabbitmq/bin"


@pytest.fixture
def broker_url(tmp_path: Path) -> Iterator[str]:
    """Give the URL of a RabbitMQ of the test's own, on free loopback ports."""
    program = shutil.which("rabbitmq-server", path=PLACE)
    if program is None:
        pytest.skip(f"no rabbitmq-server in {PLACE}")
    port, distribution, mapper = free_ports(3)
    environ = {
        "HOME": str(tmp_path),
        "RABBITMQ_NODENAME": f"fairlane{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_MNESIA_BASE": str(tmp_path / "data"),
        "RABBITMQ_LOG_BASE": str(tmp_path / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(tmp_path / "plugins"),
        "RABBITMQ_PID_FILE": str(tmp_path / "pid"),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(mapper),
    }
    url = f"amqp://guest:guest@127.0.0.1:{port}//"

    def answers() -> bool:
        try:
            with Connection(url, connect_timeout=1) as link:
                link.connect()
        except OSError:
            return False
        return True

    with Program([program], tmp_path / "rabbitmq.log", environ):
        eventually(answers, 60.0, 0.2)
        yield url
    # Erlang's port mapper is a daemon, and not of the server's session.
    subprocess.run(["epmd", "-port", str(mapper), "-kill"], check=True, stdout=subprocess.DEVNULL)


def test_a_task_goes_through_rabbitmq_to_its_end(broker_url: str) -> None:
    with running(broker_url=broker_url, task_types=(TaskType("text", "text", TEXT),)) as system:
        system.worker("worker", TEXT, DISPATCH)
        tasks = [system.do(mac(number % 3)) for number in range(30)]
        assert {record.state for record in system.ended(tasks)} == {TaskState.DONE}
        assert not [key for key in system.redis.keys("*") if "kombu" in key]
        system.at_rest()


def free_ports(count: int) -> list[int]:
    """Return TCP ports that nobody listens on."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports
