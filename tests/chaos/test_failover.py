"""Failovers on real servers: two servers, three sentinels, real Celery workers, nobody's hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane import Client
from fairlane.errors import NotFound
from support.clock import Clock, has_lived
from support.eventually import eventually, passes
from support.ledger import Judge
from support.node import noded
from support.producer import Producer
from support.sentinels import SERVICE, watched
from support.stage import Stage, staged_on
from support.store import mac

#: What the issue promises of a lost worker's tasks; a failover is to be no slower.
RECOVERY_S = 45.0
#: A hung server is given up after this, and the sentinels need as long to agree.
QUICK = {"socket_timeout_ms": 2_000}


def staff(stage: Stage) -> None:
    """Start two workers and a dispatcher, and wait until they work."""
    for name in ("one", "two"):
        stage.worker(name)
    stage.dispatcher()
    stage.system.ended(stage.send(2), 60.0)


@pytest.mark.fault(
    "F1",
    "kill -9 the primary under sentinels, with tasks running and queued",
    "lost 0; workers and clients go on by themselves ≤ 45 s",
)
def test_the_primary_is_killed(judge: Judge, tmp_path: Path) -> None:
    """A15: what runs ends on the next primary, what waits starts there, and nobody is started."""
    with watched("valkey9", tmp_path) as store, staged_on(store, **QUICK) as stage:
        system = stage.system
        staff(stage)
        with system.gated([mac(number) for number in range(4)]):
            stage.send(20)
            store.replicated()
            before, after = store.primary(), store.replica()
            clock = Clock(system)
            before.kill()
            store.becomes_primary(after)
        recovery_s = clock.until_done()
        assert recovery_s < RECOVERY_S
        before.start()
        eventually(lambda: before.role() == "slave", 60.0)
        with Producer(stage) as producer:
            producer.goes_on(20)
        judge.judge(system, recovery_s=recovery_s, receipts=producer.receipts)
        has_lived(system)


@pytest.mark.fault(
    "F2",
    "SENTINEL FAILOVER … COORDINATED three times, under load (Valkey 9)",
    "lost 0; workers and clients go on by themselves ≤ 45 s",
)
def test_a_coordinated_failover_under_load(judge: Judge, tmp_path: Path) -> None:
    """A15: a primary that hands over pauses its writers, so nothing that was accepted is behind."""
    with watched("valkey9", tmp_path) as store, staged_on(store, **QUICK) as stage:
        system, slowest_s = stage.system, 0.0
        staff(stage)
        with Producer(stage) as producer:
            for _ in range(3):
                producer.goes_on()
                store.replicated()
                after = store.replica()
                clock = Clock(system)
                with store.sentinel() as sentinel:
                    sentinel.execute_command("SENTINEL", "FAILOVER", SERVICE, "COORDINATED")
                store.becomes_primary(after)
                clock.skip()
                slowest_s = max(slowest_s, clock.until_done())
                eventually(lambda: store.replica().role() == "slave", 60.0)
        assert slowest_s < RECOVERY_S
        judge.judge(system, recovery_s=slowest_s, receipts=producer.receipts)
        has_lived(system)


@pytest.mark.fault(
    "F3",
    "REPLICAOF: the store is a replica of nobody for 10 s, under load",
    "calls are refused as STORE_READ_ONLY meanwhile; every accepted task done",
)
def test_the_store_is_demoted_for_a_while(judge: Judge) -> None:
    """A15: 503 and Retry-After meanwhile (StoreReadOnly); then all goes on by itself."""
    with noded() as node, staged_on(node, **QUICK) as stage:
        system = stage.system
        staff(stage)
        with Producer(stage) as producer:
            producer.goes_on()
            node.redis.replicaof("127.0.0.1", "1")
            producer.is_told("STORE_READ_ONLY")
            passes(10.0)
            node.redis.replicaof("NO", "ONE")
            recovery_s = Clock(system).until_done()
            assert recovery_s < RECOVERY_S
            producer.goes_on()
        assert set(producer.errors) == {"STORE_READ_ONLY"}, producer.errors
        judge.judge(system, recovery_s=recovery_s, receipts=producer.receipts)
        has_lived(system)


@pytest.mark.fault(
    "F4",
    "fail over to a replica that lags behind",
    "the store forgets what it had not sent on; that is noticed, and the rest is done",
)
def test_a_replica_that_lags_behind_takes_over(judge: Judge, tmp_path: Path) -> None:
    """A15: asynchronous replication loses the last moments, and nobody hides it."""
    with watched("valkey9", tmp_path) as store, staged_on(store, **QUICK) as stage:
        system = stage.system
        staff(stage)
        kept = stage.send(10)
        system.ended(kept)
        system.at_rest()
        with Client(system.settings) as client:
            seen = client.check_epoch()
            store.replicated()
            before, after = store.primary(), store.replica()
            with after.frozen():
                # What is on its way to a replica that stands still would reach it all the same.
                before.redis.execute_command("CLIENT", "KILL", "TYPE", "replica")
                # They leave no trace but in the store: one that ran there runs again here.
                forgotten = stage.send(5, do="echo")
                eventually(lambda: client.check_epoch().sweeps > seen.sweeps + 2, 30.0)
                before.kill()
            store.becomes_primary(after)
            noticed = client.check_epoch()
            assert noticed.lost == "older", noticed
        system.client.ping()
        found = [record for record in system.records(forgotten) if not isinstance(record, NotFound)]
        assert not found, "the replica never had them"
        clock = Clock(system)
        after_it = stage.send(10)
        recovery_s = clock.until_done()
        judge.note("forgotten", f"{len(forgotten)} of {len(kept) + len(forgotten)}, noticed")
        judge.judge(system, recovery_s=recovery_s, receipts=[*kept, *after_it])
        has_lived(system)


@pytest.mark.fault(
    "F5",
    "kill -9 the primary under load, with min_replicas = 1",
    "whatever was accepted is on the next primary: lost 0; goes on ≤ 45 s",
)
def test_the_primary_is_killed_under_load(judge: Judge, tmp_path: Path) -> None:
    """A15: a receipt is given when a replica has the task; what had run there may run again."""
    with watched("valkey9", tmp_path) as store, staged_on(store, **QUICK) as stage:
        system = stage.system
        staff(stage)
        with Producer(stage, deed="echo", min_replicas=1) as producer:
            producer.goes_on(20)
            before, after = store.primary(), store.replica()
            clock = Clock(system)
            before.kill()
            store.becomes_primary(after)
            clock.skip()
            recovery_s = clock.until_done()
            before.start()
            producer.goes_on(20)
        assert recovery_s < RECOVERY_S
        judge.judge(system, recovery_s=recovery_s, receipts=producer.receipts)
        has_lived(system)
