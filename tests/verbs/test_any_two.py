"""Any two verbs, one after the other and the other after the one: the store is healthy after each.

The rule: every pair of verbs that write is run in both orders from each of a few states, so no
interleaving of two is left out. What an error leaves is what was there before. Two that have
nothing in common leave the same, whichever came first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, Final

import pytest
import redis

from fairlane import verbs
from fairlane.errors import FairlaneError
from fairlane.grant import Grant
from fairlane.model import TaskState
from fairlane.scripts import read
from fairlane.verbs import Verb, every_verb
from fairlane.verbs.cancel import OPEN
from support.dump import Seen
from support.invariants import check
from support.store import LANE, Store, mac
from verbs.conftest import Open

#: What two verbs can have in common: a device, the order of a lane, the levels of admission, the
#: workers, the dead letters; or what has nothing to do with tasks.
ORDER, LEVEL, WORKERS, DEAD = "order", "level", "workers", "dead"
ALL: Final = frozenset({"1", "2", "3", "4", "5", "6", ORDER, LEVEL, WORKERS, DEAD})
Run = Callable[[Store], object]


def _runs(verb: Verb[Any]) -> Run:
    return lambda store: store.client.run(verb)


def _new(task_id: str, device: int = 6, **options: Any) -> verbs.Enqueue:
    return verbs.Enqueue(mac(device), LANE, {"new": task_id}, task_id=task_id, **options)


def _migrate(store: Store) -> object:
    return store.other().migrate(replace(store.client.settings, batch_size=7))


TURN: Final = (mac(5), LANE, "1")
#: Each verb that writes, at least once: what it touches, and the call.
_CALLS: Final[Mapping[str, tuple[Collection[str], Verb[Any] | Run]]] = {
    "enqueue": ({"6", LEVEL, ORDER}, _new("n1")),
    "enqueue with a key": ({"1", LEVEL, ORDER}, _new("n2", 1, idempotency_key="k")),
    "enqueue an id": ({"2", LEVEL, ORDER}, verbs.Enqueue(mac(2), LANE, {"n": 0}, task_id="b1")),
    "enqueue many": (
        {"1", "6", LEVEL, ORDER},
        verbs.EnqueueMany([_new("n3"), _new("n4", 1), _new("n3")]),
    ),
    "claim": (ALL, verbs.Claim(LANE, 1)),
    "claim the credits": (ALL, verbs.Claim(LANE)),
    "start": ({"2"}, verbs.Start("b2", 1, "w", "run")),
    "finish": ({"2", ORDER}, verbs.Finish("b1", 1, {"done": True})),
    "fail": ({"2", ORDER, LEVEL}, verbs.Fail("b1", 1, "boom", "Traceback")),
    "fail for good": ({"2", ORDER}, verbs.Fail("b1", 1, "boom", "Traceback", final=True)),
    "quarantine": ({"2", ORDER, DEAD}, verbs.Quarantine("b1", 1, "no JSON")),
    "defer a task": ({"2", ORDER, LEVEL}, verbs.Defer("b2", 1, "busy")),
    "defer a device": ({"2", ORDER, LEVEL}, verbs.Defer("b1", 1, "busy", "device")),
    "cancel what waits": ({"1", LEVEL, ORDER}, verbs.Cancel("a1")),
    "cancel what is delayed": ({"3", LEVEL, ORDER}, verbs.Cancel("c1")),
    "cancel what is leased": ({"2", ORDER}, verbs.Cancel("b2")),
    "cancel what runs": ({"2", ORDER}, verbs.Cancel("b1", force=True)),
    "cancel many": (
        {"1", "2", "3", LEVEL, ORDER},
        verbs.CancelMany(["a1", "c1", "b2", "d1", "zz"], OPEN),
    ),
    "heartbeat": ({"2", WORKERS}, verbs.Heartbeat("w", [LANE], 4, active=[("b1", 1)])),
    "another worker": ({WORKERS}, verbs.Heartbeat("x", [LANE, "ocr"], 2)),
    "deregister": ({WORKERS}, verbs.Deregister("w")),
    "claim a device": (ALL, verbs.ClaimDevice(LANE)),
    "renew": ({"5"}, verbs.Renew(*TURN)),
    "pop": ({"5", ORDER, LEVEL}, verbs.Pop(*TURN)),
    "release": ({"5", ORDER}, verbs.Release(*TURN)),
    "sweep": (ALL, verbs.Sweep()),
    "sweep one": (ALL, verbs.Sweep(1)),
    "purge": (ALL, verbs.Purge()),
    "weigh": ({"1", ORDER}, verbs.Configure(mac(1), 5)),
    "limit": ({"2", ORDER}, verbs.Configure(mac(2), max_running=1, rate_per_s=2)),
    "promise": ({"3", ORDER}, verbs.Configure(mac(3), min_running=1)),
    "move": ({"1", ORDER, LEVEL}, verbs.Configure(mac(1), site="a")),
    "pause": ({"1", ORDER}, verbs.Configure(mac(1), paused=True)),
    "free": ({"2", ORDER}, verbs.Configure(mac(2), 1, False, 0, 0, 0, "")),
    "redrive": ({"4", DEAD, LEVEL, ORDER}, verbs.Redrive(["d1"])),
    "drop": ({"4", DEAD}, verbs.Drop(["d1"])),
    "reconcile": (ALL, verbs.Reconcile()),
    "mend_devices": (ALL, verbs.MendDevices([mac(1), mac(2), mac(3), mac(9)])),
    "mend_tasks": (ALL, verbs.MendTasks(["a1", "a2", "b1", "b2", "c1", "zz"])),
    "mend_sums": (ALL, verbs.MendSums()),
    "watermark": (ALL, verbs.Watermark()),
    "record the minute": (ALL, verbs.RecordMinute()),
    "measure": ({LEVEL}, verbs.Measure(95, 100)),
    "migrate": (ALL, _migrate),
    "join": (set(), verbs.Join()),
    "lead": ({"leader"}, verbs.Lead("me")),
    "report": ({"abnormal"}, verbs.ReportAbnormal([{"a": 1}])),
    "announce": ({"processes"}, verbs.Announce("p", report={"role": "beat"})),
    "withdraw": ({"processes"}, verbs.Withdraw("p")),
    "check the epoch": ({"epoch"}, verbs.CheckEpoch(is_sweep=True, nonce="e")),
    "acknowledge": ({"epoch"}, verbs.Acknowledge()),
    "issue a token": ({"tokens"}, verbs.IssueToken(Grant("viewer"), 60_000, "t1")),
    "revoke a token": ({"tokens"}, verbs.RevokeToken("t1")),
    "keep a file": ({"files"}, verbs.KeepFile("a" * 64)),
    "doom files": ({"files"}, verbs.DoomFiles()),
    "forget files": ({"files"}, verbs.ForgetFiles(["a" * 64])),
}
DEEDS: Final[Mapping[str, tuple[frozenset[str], Run]]] = {
    name: (frozenset(touches), _runs(call) if isinstance(call, Verb) else call)
    for name, (touches, call) in _CALLS.items()
}


def busy(store: Store) -> None:
    """Six devices: queued; running, leased and queued; delayed; dead; in a turn; new."""
    run = store.client.run
    store.offer(4, worker_id="w")
    for task_id in ("d1",):
        run(_new(task_id, 4))
        while store.state(task_id) is not TaskState.DEAD:
            (leased,) = run(verbs.Claim(LANE, 1)).leased
            run(verbs.Start(task_id, leased.attempt, "w", "run"))
            due_ms = run(verbs.Fail(task_id, leased.attempt, "boom")).due_ms
            store.clock.now_ms = max(store.clock.now_ms, due_ms)
    for at in range(2):
        run(_new(f"e{at + 1}", 5))
    turn = run(verbs.ClaimDevice(LANE))
    assert turn is not None
    assert (turn.mac, turn.lane, turn.token) == TURN
    run(verbs.Enqueue(mac(2), LANE, {"n": 0}, task_id="b1"))
    run(_new("b2", 2))
    assert [task.task_id for task in run(verbs.Claim(LANE, 2)).leased] == ["b1", "b2"]
    run(verbs.Start("b1", 1, "w", "run"))
    run(_new("c1", 3, site="b"))
    (leased,) = run(verbs.Claim(LANE, 1)).leased
    run(verbs.Defer(leased.task_id, leased.attempt))
    for at in range(3):
        run(_new(f"a{at + 1}", 1, ttl_ms=20_000 if at == 1 else None))
    for task_id, device in (("b3", 2), ("c2", 3)):
        run(_new(task_id, device))
    run(verbs.Configure(mac(2), weight=3))


def held(store: Store) -> None:
    """The same, with each device at a limit of its own."""
    busy(store)
    store.client.run(verbs.Configure(mac(1), paused=True))
    store.client.run(verbs.Configure(mac(2), max_running=2))
    store.client.run(verbs.Configure(mac(3), rate_per_s=0.1, min_running=1))
    store.client.run(verbs.Claim(LANE, 1))


def late(store: Store) -> None:
    """The same, when leases, turns, delays and a TTL are over and nobody has looked."""
    busy(store)
    store.clock.advance(70_000)


def too_late(store: Store) -> None:
    """The same, when everything is past its TTL too."""
    busy(store)
    store.clock.advance(store.settings.task_ttl_ms + 1)


def empty(store: Store) -> None:
    """Nothing that any of the verbs is about."""


class Snapshot:
    """A state of a store, to begin from again and again."""

    def __init__(self, store: Store, raw: Any) -> None:
        self.raw, self.now_ms, self.seen = raw, store.clock.now_ms, _seen(store)
        names = raw.keys("*")
        pipeline = raw.pipeline(transaction=False)
        for name in names:
            pipeline.pttl(name).dump(name)
        told = iter(pipeline.execute())
        self.held = list(zip(names, told, told, strict=True))

    def restore(self, store: Store) -> None:
        """Bring it back."""
        pipeline = self.raw.pipeline(transaction=False)
        pipeline.flushall()
        for name, lives_ms, value in self.held:
            pipeline.restore(name, max(0, lives_ms), value)
        pipeline.execute()
        store.clock.now_ms = self.now_ms


def _seen(store: Store) -> Seen:
    return Seen(store.redis, store.keys, store.client.settings, store.clock.now_ms)


def _checked(store: Store, deed: str, before: Seen, since: str = "") -> Seen:
    """Do it; the store is healthy after it, and as before if it was refused."""
    refused = ""
    try:
        DEEDS[deed][1](store)
    except FairlaneError as error:
        refused = str(error)
    after = _seen(store)
    if refused:
        assert after.digest == before.digest, f"{since}{deed}: {refused}, and something changed"
    else:
        try:
            check(after)
        except AssertionError as error:
            raise AssertionError(f"{since}{deed}") from error
    return after


def _told(seen: Seen) -> Mapping[str, Any]:
    """Return what two orders must agree on: all but the stream and places among equals."""
    tasks = {
        task: {name: value for name, value in record.items() if name != "paid"}
        for task, record in seen.tasks.items()
    }
    plain = ("GLOBAL_PENDING", "OVERLOADED", "DELAYED", "DEADLINES", "TURNS", "TOTALS", "CONFIG")
    return {
        "tasks": tasks,
        "queues": seen.queues,
        "macs": {mac: seen.meta(mac).get("pending_count") for mac in seen.macs},
        "scheduled": {lane: set(seen.scheduled(lane)) for lane in seen.settings.lanes},
        "leases": {lane: seen.leases(lane) for lane in seen.settings.lanes},
        "workers": seen.scores("WORKERS"),
        **{name: seen.get(seen.keys.name(name), None) for name in plain},
    }


STATES: Final = (busy, held, late, too_late, empty)


def test_every_verb_that_writes_is_there(store: Store) -> None:
    writing = {
        kind for kind in every_verb() if "\n-- Flags    no-writes\n" not in read(kind.SCRIPT)
    }
    ran: set[type[Verb[Any]]] = {verbs.Migrate}
    original = store.client.run

    def note(verb: Verb[Any]) -> object:
        ran.add(type(verb))
        return original(verb)

    busy(store)
    for name, (_, deed) in DEEDS.items():
        if name != "migrate":
            with_note: Any = store.client
            with_note.run = note
            try:
                deed(store)
            except FairlaneError:
                continue
    assert writing <= ran, writing - ran


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("state", "policy"),
    [*((state, "fair") for state in STATES), (busy, "aging"), (late, "aging")],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_any_two_verbs_in_both_orders(
    open_store: Open, state: Callable[[Store], None], policy: str
) -> None:
    store = open_store(policy=policy, max_attempts=2, idempotency_cap=2)
    state(store)
    ends: dict[tuple[str, str], Seen] = {}
    with redis.Redis.from_url(store.url) as raw:
        begin = Snapshot(store, raw)
        check(begin.seen)
        for first in DEEDS:
            begin.restore(store)
            _checked(store, first, begin.seen)
            between = Snapshot(store, raw)
            for second in DEEDS:
                between.restore(store)
                ends[first, second] = _checked(store, second, between.seen, f"{first}, then ")
    for one, other in combinations(DEEDS, 2):
        if not DEEDS[one][0] & DEEDS[other][0]:
            told, otherwise = _told(ends[one, other]), _told(ends[other, one])
            assert told == otherwise, f"{one} and {other} do not commute"
