"""Faults of the store under load, on real processes: nothing that was accepted is lost."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fairlane import Client, TaskState
from fairlane.errors import StoreError, StoreFull, StoreUnavailable
from support.clock import Clock, has_lived
from support.eventually import eventually, passes
from support.ledger import Judge
from support.node import Node, noded
from support.producer import Producer
from support.servers import KINDS
from support.stage import Stage, staged_on
from support.store import mac

#: A hung server is given up after this.
QUICK = {"socket_timeout_ms": 2_000}


@contextmanager
def staffed(node: Node, **settings: Any) -> Iterator[Stage]:
    """Give a stage on a server with two workers and a dispatcher that work."""
    with staged_on(node, **{**QUICK, **settings}) as stage:
        for name in ("one", "two"):
            stage.worker(name)
        stage.dispatcher()
        stage.system.ended(stage.send(2), 60.0)
        yield stage


def under_load(
    judge: Judge,
    stage: Stage,
    inject: Callable[[Stage, Producer], None],
    *,
    times: int = 1,
    within_s: float,
    codes: frozenset[str],
) -> Producer:
    """Inject a fault while a producer sends, and judge: the slowest time until a task was done."""
    slowest_s = 0.0
    with Producer(stage) as producer:
        for _ in range(times):
            producer.goes_on()
            inject(stage, producer)
            took_s = Clock(stage.system).until_done()
            assert took_s < within_s, f"{took_s} s until a task was done"
            slowest_s = max(slowest_s, took_s)
        producer.goes_on()
    assert set(producer.errors) <= codes, producer.errors
    judge.judge(stage.system, recovery_s=slowest_s, receipts=producer.receipts)
    has_lived(stage.system)
    return producer


AWAY = frozenset({"STORE_UNAVAILABLE"})


@pytest.mark.fault(
    "S1",
    "restart the store (append-only file) five times, 2 s apart, under load",
    "lost 0; a task is done ≤ 10 s after each",
)
def test_the_store_is_restarted_five_times(judge: Judge) -> None:
    """A13."""

    with noded() as node, staffed(node) as stage:

        def restart(_: Stage, __: Producer) -> None:
            passes(2.0)
            node.stop()
            node.start()

        under_load(judge, stage, restart, times=5, within_s=10.0, codes=AWAY)


@pytest.mark.fault(
    "S2",
    "kill -9 the store (append-only file), away for 5 s, three times, under load",
    "lost 0; a task is done ≤ 10 s after each",
)
def test_the_store_is_killed(judge: Judge) -> None:
    """A13: what was acknowledged was written, and only a crash of the machine can lose that."""
    with noded() as node, staffed(node) as stage:

        def kill(_: Stage, producer: Producer) -> None:
            node.kill()
            producer.is_told("STORE_UNAVAILABLE")
            passes(5.0)
            node.start()

        under_load(judge, stage, kill, times=3, within_s=10.0, codes=AWAY)


@pytest.mark.fault(
    "S3",
    "SCRIPT FLUSH and FUNCTION FLUSH at random, 200 times, under load",
    "no error reaches a client; lost 0",
)
@pytest.mark.smoke
def test_the_libraries_are_flushed_time_and_again(judge: Judge) -> None:
    """A14."""
    with noded() as node, staffed(node) as stage, node.raw() as raw:

        def flush(_: Stage, producer: Producer) -> None:
            for at in range(200):
                raw.execute_command(*(("FUNCTION", "FLUSH") if at % 2 else ("SCRIPT", "FLUSH")))
                if at % 10 == 0:
                    producer.goes_on(1)

        producer = under_load(judge, stage, flush, within_s=10.0, codes=frozenset())
        assert not producer.errors


@pytest.mark.fault(
    "S4",
    "the store hangs for 10 s (SIGSTOP), twice, under load",
    "calls give up after the socket timeout; a task is done ≤ 10 s after it goes on; lost 0",
)
def test_the_store_hangs(judge: Judge) -> None:
    """A13: everything gives up on a hung store, and finds it again."""
    with noded() as node, staffed(node) as stage:

        def hang(_: Stage, producer: Producer) -> None:
            with node.frozen():
                producer.is_told("STORE_UNAVAILABLE", 30.0)
                passes(10.0)

        under_load(judge, stage, hang, times=2, within_s=10.0, codes=AWAY)


@pytest.mark.fault(
    "S5",
    "maxmemory with 100 tasks queued, and under load",
    "new tasks are refused as STORE_FULL; the backlog drains; accepting goes on; lost 0",
)
def test_the_memory_of_the_store_is_full(judge: Judge) -> None:
    """A16: what was accepted is done while the store accepts nothing."""
    for kind in KINDS:
        fill_up(judge, kind)


def fill_up(judge: Judge, kind: str) -> None:
    with noded(kind) as node, staffed(node) as stage, node.raw() as raw:
        system = stage.system
        with system.gated([mac(number) for number in range(4)]):
            queued = stage.send(100)
            raw.config_set("maxmemory", 1)
            with pytest.raises(StoreFull):
                system.do(mac(1))
        assert {record.state for record in system.ended(queued, 60.0)} == {TaskState.DONE}
        raw.config_set("maxmemory", 0)

        def fill(_: Stage, producer: Producer) -> None:
            raw.config_set("maxmemory", 1)
            producer.is_told("STORE_FULL")
            passes(5.0)
            raw.config_set("maxmemory", 0)

        under_load(judge, stage, fill, within_s=10.0, codes=frozenset({"STORE_FULL"}))


@pytest.mark.fault(
    "S6",
    "BGSAVE fails (MISCONF), under load",
    "calls are refused as STORE_READ_ONLY; a task is done ≤ 10 s after it is mended; lost 0",
)
def test_the_store_cannot_write_its_snapshot(judge: Judge) -> None:
    """K15: every write is refused while a snapshot fails."""
    with noded() as node, staffed(node) as stage, node.raw() as raw:

        def spoil(_: Stage, producer: Producer) -> None:
            raw.config_set("save", "3600 1")
            raw.config_set("rdbcompression", "no")
            place = node.folder / "dump.rdb"
            place.mkdir()
            raw.bgsave()
            producer.is_told("STORE_READ_ONLY")
            passes(5.0)
            place.rmdir()
            raw.bgsave()
            eventually(lambda: raw.info("persistence")["rdb_last_bgsave_status"] == "ok", 30.0)

        under_load(judge, stage, spoil, within_s=10.0, codes=frozenset({"STORE_READ_ONLY"}))


@pytest.mark.fault(
    "S7",
    "the store's disk is full (8 MB tmpfs), under load",
    "calls are refused; a task is done ≤ 10 s after there is room; lost 0",
)
def test_the_disk_of_the_store_is_full(judge: Judge) -> None:
    """A store that cannot append refuses what writes, and goes on when there is room."""
    with small_disk(8) as disk, noded(folder=disk) as node, staffed(node) as stage:

        def fill(_: Stage, producer: Producer) -> None:
            ballast = disk / "ballast"
            with suppress(OSError), ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(64 * 1024))
            producer.is_told("STORE_READ_ONLY")
            passes(3.0)
            ballast.unlink()

        under_load(judge, stage, fill, within_s=10.0, codes=frozenset({"STORE_READ_ONLY"}))


@pytest.mark.fault(
    "S8",
    "maxclients reached, under load",
    "a new client is told STORE_UNAVAILABLE; who is connected goes on; lost 0",
)
def test_the_store_has_no_place_for_another_client(judge: Judge) -> None:
    """Who is connected stays; who is not is told, and gets in when there is a place again."""
    with noded() as node, staffed(node) as stage, node.raw() as raw:

        def crowd(stage: Stage, producer: Producer) -> None:
            raw.config_set("maxclients", raw.info("clients")["connected_clients"])
            stranger = Client(stage.system.settings)
            with pytest.raises(StoreUnavailable, match="max number of clients"):
                stranger.ping()
            producer.goes_on(20)
            raw.config_set("maxclients", 10_000)
            stranger.ping()
            stranger.close()

        under_load(judge, stage, crowd, within_s=10.0, codes=AWAY)


@pytest.mark.fault(
    "S9",
    "the store comes back empty",
    "it is noticed and said; what is sent from then on is done",
)
def test_the_store_comes_back_empty(judge: Judge, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody can keep what the store forgot; nobody may hide it either."""
    with noded() as node, staffed(node) as stage:
        system = stage.system
        with Client(system.settings) as client:
            client.check_epoch()
            forgotten = stage.send(10)
            system.ended(forgotten)
            node.stop()
            node.empty()
            node.start()
            client.ping()
        assert "it came back empty" in caplog.text
        system.notes.unlink(missing_ok=True)
        with Producer(stage) as producer:
            producer.goes_on(20)
            recovery_s = Clock(system).until_done()
        assert recovery_s < 45.0
        judge.note("forgotten", f"{len(forgotten)} tasks, noticed")
        judge.judge(system, recovery_s=recovery_s, receipts=producer.receipts)
        has_lived(system)


@pytest.mark.fault(
    "S10",
    "a foreign key of a wrong type in the place of one device's record, under load",
    "calls for that device are an error; all others go on; lost 0",
)
def test_a_foreign_key_stands_in_the_place_of_ours(judge: Judge) -> None:
    """What is no store of ours is told, and its neighbours notice nothing."""
    with noded() as node, staffed(node) as stage, node.raw() as raw:
        spoilt = stage.system.client.keys.device("META", mac(99))

        def spoil(stage: Stage, producer: Producer) -> None:
            raw.set(spoilt, "foreign")
            with pytest.raises(StoreError, match="is a string and should be a hash"):
                stage.system.do(mac(99))
            producer.goes_on(50)
            assert raw.get(spoilt) == "foreign"
            raw.delete(spoilt)
            stage.system.ended([stage.system.do(mac(99))], 30.0)

        under_load(judge, stage, spoil, within_s=10.0, codes=frozenset())


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """Give a folder that holds no more than this; skip where this kind of machine has none."""
    place = Path(tempfile.mkdtemp(prefix="fairlane-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", str(place)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        place.rmdir()
        pytest.skip(f"a disk of a fixed size needs root and mount: {made.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()
