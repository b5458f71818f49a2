"""One call of every verb on a store that is prepared for it: what holds of all verbs alike.

The rule: ids, clock and order are fixed, so the same case on another empty store answers the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlane import verbs
from fairlane.grant import Grant
from fairlane.model import Seen
from fairlane.verbs import Verb
from fairlane.verbs.tokens import MAX_TTL_MS
from support.store import LANE, START_MS, Store, mac

Case = Callable[[Store], Verb[Any]]


def case_of(verb: type[Verb[Any]]) -> Case:
    """Return the case of a verb."""
    return CASES[verb]


def _queued(store: Store) -> None:
    for device, task_id in ((1, "a"), (1, "b"), (2, "c")):
        store.client.enqueue(mac(device), LANE, {"task": task_id}, task_id=task_id)


def _leased(store: Store) -> None:
    _queued(store)
    assert [task.task_id for task in store.claim(1)] == ["a"]


def _running(store: Store) -> None:
    _leased(store)
    store.run(verbs.Start("a", 1, "worker", "run"))


def _dead(store: Store) -> None:
    _running(store)
    for _ in range(store.settings.max_defers + 1):
        attempt = store.client.task("a").attempt
        due_ms = store.run(verbs.Defer("a", attempt)).due_ms
        store.clock.now_ms = max(store.clock.now_ms, due_ms)
        store.claim(10)
    assert store.state("a") == "dead"


def _turn(store: Store) -> tuple[str, str, str]:
    _queued(store)
    turn = store.run(verbs.ClaimDevice(LANE))
    assert turn is not None
    return turn.mac, turn.lane, turn.token


def _after(prepare: Callable[[Store], None], verb: Verb[Any]) -> Case:
    def case(store: Store) -> Verb[Any]:
        prepare(store)
        return verb

    return case


def _worker(store: Store) -> None:
    store.offer(2, "text", worker_id="host:1:a", report={"cpu": "12"})


def _system(store: Store) -> None:
    _running(store)
    _worker(store)


def _lost(store: Store) -> None:
    _system(store)
    store.clock.advance(store.settings.lease_ms)


def _late(store: Store) -> None:
    _queued(store)
    store.clock.advance(store.settings.task_ttl_ms + 1)


def _abnormal(store: Store) -> None:
    store.run(verbs.ReportAbnormal([{"a": 1}, {"b": [2]}]))


def _watermark(store: Store) -> None:
    _system(store)
    store.run(verbs.Watermark())


def _epoch(store: Store) -> None:
    """Name the epoch, as an empty store's first process does."""
    store.redis.delete(store.keys.name("EPOCH"))
    store.run(verbs.CheckEpoch(nonce="e1"))


def _lost_store(store: Store) -> None:
    _epoch(store)
    store.run(verbs.CheckEpoch(Seen("e0", 1, START_MS)))


def _stored(store: Store) -> None:
    store.run(verbs.KeepFile("a" * 64))
    store.clock.advance(store.settings.file_ttl_ms)


def _doomed(store: Store) -> None:
    _stored(store)
    store.run(verbs.DoomFiles())


def _issued(store: Store) -> None:
    for token_id in ("t1", "t2"):
        store.run(verbs.IssueToken(Grant("device", mac(1)), MAX_TTL_MS, token_id))


def _revoked(store: Store) -> None:
    _issued(store)
    store.run(verbs.RevokeToken("t1"))


def _minutes(store: Store) -> None:
    for _ in range(2):
        store.run(verbs.RecordMinute())
        store.clock.advance(60_000)


def _nothing(store: Store) -> None:
    """An empty store will do."""


def _announced(store: Store) -> None:
    report = {"role": "beat", "version": "1", "digest": "d"}
    store.run(verbs.Announce("host:1:a", agreed={"broker": "the store"}, report=report))


CASES: Final[Mapping[type[Verb[Any]], Case]] = {
    verbs.Acknowledge: _after(_lost_store, verbs.Acknowledge()),
    verbs.Announce: _after(
        _announced, verbs.Announce("host:2:b", is_new=True, agreed={"broker": "the store"})
    ),
    verbs.Cancel: _after(_queued, verbs.Cancel("b")),
    verbs.CancelMany: _after(_queued, verbs.CancelMany(["b", "c", "z"])),
    verbs.CheckEpoch: _after(_epoch, verbs.CheckEpoch(Seen("e1", 1, START_MS), nonce="e2")),
    verbs.CheckDevices: _after(_running, verbs.CheckDevices([mac(1), mac(2)])),
    verbs.CheckSums: _after(_system, verbs.CheckSums()),
    verbs.CheckTasks: _after(_running, verbs.CheckTasks(["a", "b", "z"])),
    verbs.Claim: _after(_queued, verbs.Claim(LANE, 2, "me", with_payload=True)),
    verbs.ClaimDevice: _after(_queued, verbs.ClaimDevice(LANE)),
    verbs.Configure: _after(_queued, verbs.Configure(mac(1), weight=2.5)),
    verbs.DeadLetters: _after(_dead, verbs.DeadLetters()),
    verbs.Defer: _after(_running, verbs.Defer("a", 1, "busy")),
    verbs.Deregister: _after(_worker, verbs.Deregister("host:1:a")),
    verbs.Devices: _after(_queued, verbs.Devices()),
    verbs.DoomFiles: _after(_stored, verbs.DoomFiles()),
    verbs.Drop: _after(_dead, verbs.Drop(["a", "b"])),
    verbs.Enqueue: _after(
        _nothing,
        verbs.Enqueue(mac(1), LANE, {"a": 1}, task_id="a", traceparent=f"00-{1:032x}-{1:016x}-01"),
    ),
    verbs.EnqueueMany: _after(
        _queued,
        verbs.EnqueueMany([verbs.Enqueue(mac(3), LANE, {"at": at}, task_id=at) for at in "xyx"]),
    ),
    verbs.Explain: _after(_system, verbs.Explain("b")),
    verbs.Fail: _after(_running, verbs.Fail("a", 1, "error", "Traceback: boom")),
    verbs.FindTasks: _after(_dead, verbs.FindTasks("deadlines")),
    verbs.Finish: _after(_running, verbs.Finish("a", 1, {"found": 0})),
    verbs.ForgetFiles: _after(_doomed, verbs.ForgetFiles(["a" * 64])),
    verbs.Heartbeat: _after(
        _running, verbs.Heartbeat("host:1:a", ["text"], 2, active=[("a", 1), ("z", 9)])
    ),
    verbs.InspectDevice: _after(_running, verbs.InspectDevice(mac(1))),
    verbs.InspectLanes: _after(_system, verbs.InspectLanes()),
    verbs.InspectProcesses: _after(_announced, verbs.InspectProcesses()),
    verbs.InspectShares: _after(_queued, verbs.InspectShares()),
    verbs.InspectTask: _after(_running, verbs.InspectTask("a")),
    verbs.InspectTimes: _after(_dead, verbs.InspectTimes()),
    verbs.InspectTotals: _after(_dead, verbs.InspectTotals()),
    verbs.InspectWorkers: _after(_worker, verbs.InspectWorkers()),
    verbs.InspectEpoch: _after(_epoch, verbs.InspectEpoch()),
    verbs.IssueToken: _after(_nothing, verbs.IssueToken(Grant("viewer"), 60_000, "t1")),
    verbs.Join: _after(_epoch, verbs.Join()),
    verbs.KeepFile: _after(_nothing, verbs.KeepFile("a" * 64)),
    verbs.Lead: _after(_nothing, verbs.Lead("me")),
    verbs.Measure: _after(_queued, verbs.Measure(95, 100)),
    verbs.Members: _after(_queued, verbs.Members("deadlines")),
    verbs.MendDevices: _after(_running, verbs.MendDevices([mac(1), mac(2)])),
    verbs.SumPage: _after(_queued, verbs.SumPage("macs")),
    verbs.MendSums: _after(_system, verbs.MendSums()),
    verbs.MendTasks: _after(_running, verbs.MendTasks(["a", "b", "z"])),
    verbs.Migrate: _after(_queued, verbs.Migrate()),
    verbs.Overload: _after(_queued, verbs.Overload()),
    verbs.Pop: lambda store: verbs.Pop(*_turn(store), "me"),
    verbs.Purge: _after(_late, verbs.Purge()),
    verbs.Quarantine: _after(_running, verbs.Quarantine("a", 1, "no JSON")),
    verbs.ReadAbnormal: _after(_abnormal, verbs.ReadAbnormal()),
    verbs.ReadHistory: _after(_minutes, verbs.ReadHistory()),
    verbs.ReadRevocations: _after(_revoked, verbs.ReadRevocations()),
    verbs.ReadWatermark: _after(_watermark, verbs.ReadWatermark()),
    verbs.Reconcile: _after(_queued, verbs.Reconcile()),
    verbs.RecordMinute: _after(_running, verbs.RecordMinute()),
    verbs.Redrive: _after(_dead, verbs.Redrive(["a", "b"])),
    verbs.Release: lambda store: verbs.Release(*_turn(store)),
    verbs.Renew: lambda store: verbs.Renew(*_turn(store)),
    verbs.ReportAbnormal: _after(_nothing, verbs.ReportAbnormal([{"a": 1}])),
    verbs.RevokeToken: _after(_issued, verbs.RevokeToken("t2")),
    verbs.Start: _after(_leased, verbs.Start("a", 1, "worker", "run")),
    verbs.Sweep: _after(_lost, verbs.Sweep()),
    verbs.Withdraw: _after(_announced, verbs.Withdraw("host:1:a")),
    verbs.Tokens: _after(_revoked, verbs.Tokens()),
    verbs.Watermark: _after(_system, verbs.Watermark()),
}
