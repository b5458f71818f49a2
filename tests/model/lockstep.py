"""Random programs, run by the real scripts of the `seed` preset and by the oracle in lock step.

The rule: both are told the same under one virtual clock, and after every step everything that can
be seen of the two is equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fairlane import Client, Receipt, Settings, verbs
from fairlane.errors import TaskEnded, TurnLost
from fairlane.model import Leased, Turn
from model.oracle import Numbers, Oracle
from support.servers import Server

START_MS: Final = 1_796_000_000_000
LANE: Final = "main"
MACS: Final = [f"02:00:00:00:00:{last:02x}" for last in range(1, 5)]
#: What happens to a task by its age: it starves, is past W_max, expires.
AGES_MS: Final = [30_000, 600_000, 3_600_000]

Fate: TypeAlias = Literal["run", "defer", "keep"]
a_mac = st.sampled_from(MACS)
a_pick = st.integers(0, 63)


def seed_settings(store_url: str, numbers: Numbers) -> Settings:
    """Return the `seed` preset with these numbers; the document's own are the preset's."""
    own, given = vars(Numbers()), vars(numbers)
    ours = {
        "MAX_TOTAL_PENDING": "max_total_pending",
        "MAX_PER_MAC_PENDING": "max_per_mac_pending",
        "BATCH_SIZE": "batch_size",
        "MAX_DEFER_COUNT": "max_defers",
    }
    changed = {ours[name]: value for name, value in given.items() if value != own[name]}
    return Settings(preset="seed", store_url=store_url, **changed)


class LockStep(RuleBasedStateMachine):
    """One store and one oracle, which are told the same."""

    def __init__(self, server: Server, numbers: Numbers) -> None:
        super().__init__()
        server.client.flushall()
        self.oracle = Oracle(numbers, START_MS)
        self.store: Any = server.client
        self.client = Client(seed_settings(server.url, numbers), clock=lambda: self.oracle.now)
        self.store.set(self.client.keys.clock, 1)
        self.turns: dict[str, Turn] = {}
        self.lost_turns: list[Turn] = []
        self.leased: dict[str, Leased] = {}
        self.is_ordered = True

    def teardown(self) -> None:
        self.client.close()

    @rule(ms=st.sampled_from([1, 5_000, 30_000, 240_000, 600_000]))
    def time_passes(self, ms: int) -> None:
        self.oracle.now += ms
        # The scripts let a device tie with those past W_max when a claim looks, and not before.
        self.is_ordered = False

    @precondition(lambda self: self.oracle.global_pending)
    @rule(pick=a_pick, age_ms=st.sampled_from(AGES_MS), off_ms=st.sampled_from([-1, 0, 1]))
    def a_task_comes_of_age(self, pick: int, age_ms: int, off_ms: int) -> None:
        queued = [job for host in self.oracle.hosts.values() for job in host.queue]
        at_ms = queued[pick % len(queued)].created_at + age_ms + off_ms
        self.time_passes(max(0, at_ms - self.oracle.now))

    @rule(mac=a_mac, apart_ms=st.lists(st.sampled_from([0, 1, 7_000]), min_size=1, max_size=5))
    def enqueue(self, mac: str, apart_ms: list[int]) -> None:
        for ms in apart_ms:
            self.time_passes(ms)
            task_id = self._next_id()
            verdict = self.client.run(verbs.Enqueue(mac, "text", {}, task_id=task_id))
            assert isinstance(verdict, Receipt) == self.oracle.enqueue(task_id, mac)

    @rule(counts=st.lists(st.tuples(a_mac, st.integers(1, 5)), min_size=1, max_size=3))
    def enqueue_many(self, counts: list[tuple[str, int]]) -> None:
        macs = [mac for mac, count in counts for _ in range(count)]
        items = [(self._next_id(at), mac) for at, mac in enumerate(macs)]
        verdicts = self.client.enqueue_many(
            verbs.Enqueue(mac, "ocr", {}, task_id=task_id) for task_id, mac in items
        )
        accepted = [self.oracle.enqueue(task_id, mac) for task_id, mac in items]
        assert [isinstance(verdict, Receipt) for verdict in verdicts] == accepted

    @rule(exclude_mac=st.none() | a_mac)
    def claim(self, exclude_mac: str | None) -> None:
        self._claim(exclude_mac)

    @precondition(lambda self: self.turns)
    @rule(pick=a_pick)
    def renew(self, pick: int) -> None:
        self._renew(_pick(self.turns, pick))

    @precondition(lambda self: self.turns)
    @rule(pick=a_pick)
    def pop(self, pick: int) -> None:
        self._pop(_pick(self.turns, pick))

    @precondition(lambda self: self.turns)
    @rule(pick=a_pick)
    def release(self, pick: int) -> None:
        self._release(_pick(self.turns, pick))

    @rule(
        fates=st.lists(st.sampled_from(["run", "defer", "defer", "keep"]), min_size=1, max_size=6),
        order=st.permutations(range(6)),
    )
    def take_a_turn(self, fates: list[Fate], order: list[int]) -> None:
        turn = self._claim(None)
        if turn is None:
            return
        batch = self._renew(turn)
        popped = [self._pop(turn) for _ in fates[:batch]]
        ends = sorted(zip(order, popped, fates, strict=False), key=lambda end: end[0])
        for _, task, fate in ends:
            if task is not None:
                self._end(task, fate)
        self._release(turn)

    @precondition(lambda self: self.leased)
    @rule(picks=st.lists(a_pick, min_size=1, max_size=5), fate=st.sampled_from(["run", "defer"]))
    def end(self, picks: list[int], fate: Fate) -> None:
        for pick in picks[: len(self.leased)]:
            self._end(_pick(self.leased, pick), fate)

    @precondition(lambda self: self.lost_turns)
    @rule(pick=a_pick, verb=st.sampled_from([verbs.Renew, verbs.Pop, verbs.Release]))
    def a_lost_turn_opens_nothing(self, pick: int, verb: Callable[..., verbs.Verb[Any]]) -> None:
        turn = self.lost_turns[pick % len(self.lost_turns)]
        with pytest.raises(TurnLost):
            self.client.run(verb(turn.mac, LANE, turn.token))

    @precondition(lambda self: self.oracle.jobs)
    @rule(pick=a_pick)
    def cancel(self, pick: int) -> None:
        job = _pick(self.oracle.jobs, pick)
        if job.where in ("done", "dead", "expired"):
            with pytest.raises(TaskEnded):
                self.client.cancel(job.task_id)
        else:
            assert self.client.cancel(job.task_id) == self.oracle.cancel(job.task_id)
            self.leased.pop(job.task_id, None)

    @rule()
    def sweep(self) -> None:
        self.client.run(verbs.Sweep())
        self.oracle.sweep()
        for mac in [mac for mac in self.turns if self.oracle.hosts[mac].turn_ends is None]:
            self.lost_turns.append(self.turns.pop(mac))
        for task_id in [name for name in self.leased if self.oracle.jobs[name].where != "leased"]:
            del self.leased[task_id]

    @rule()
    def purge(self) -> None:
        purged: set[str] = set()
        while expired := self.client.run(verbs.Purge()):
            purged.update(expired)
        assert purged == self.oracle.purge()

    @invariant()
    def all_that_can_be_seen_is_equal(self) -> None:
        oracle = self.oracle
        level, *devices = self.client.run_many([verbs.Overload(), *map(verbs.InspectDevice, MACS)])
        assert level.overloaded == oracle.overloaded()
        assert level.global_pending == oracle.global_pending
        assert level.overloaded_devices == len(oracle.overloaded_macs)
        dead_letters, *queues = self._lists()
        assert dead_letters == oracle.dead_letters
        schedule = oracle.schedule()
        for device, queue in zip(devices, queues, strict=True):
            (lane,) = device.lanes
            host = oracle.host(device.mac)
            assert queue == [job.task_id for job in host.queue]
            assert device.pending == lane.pending == lane.queued == len(queue)
            assert device.waited_ms == oracle.wait(device.mac)
            assert device.score == oracle.score(device.mac)
            assert (lane.rank >= 0) == (device.mac in schedule)
            if self.is_ordered and lane.rank >= 0:
                assert lane.rank == schedule.index(device.mac)
            if lane.held_by == "backoff":
                assert lane.until_ms == host.unschedulable_until

    def _next_id(self, further: int = 0) -> str:
        return f"t{len(self.oracle.jobs) + further:04}"

    def _claim(self, exclude_mac: str | None) -> Turn | None:
        turn = self.client.run(verbs.ClaimDevice(LANE, exclude_mac or ""))
        assert (turn and turn.mac) == self.oracle.claim(exclude_mac)
        if turn is not None:
            self.turns[turn.mac] = turn
        self.is_ordered = True
        return turn

    def _renew(self, turn: Turn) -> int:
        batch = self.client.run(verbs.Renew(turn.mac, LANE, turn.token)).batch
        assert batch == self.oracle.renew(turn.mac)
        return batch

    def _pop(self, turn: Turn) -> Leased | None:
        got = self.client.run(verbs.Pop(turn.mac, LANE, turn.token))
        popped, expired = self.oracle.pop(turn.mac)
        assert [task.task_id for task in got.leased] == ([popped] if popped else [])
        assert list(got.expired) == expired
        assert self.client.device(turn.mac).score == self.oracle.score(turn.mac)
        if popped is None:
            return None
        return self.leased.setdefault(popped, got.leased[0])

    def _end(self, task: Leased, fate: Fate) -> None:
        if fate == "keep":
            return
        del self.leased[task.task_id]
        if fate == "run":
            self.client.run(verbs.Start(task.task_id, task.attempt, "worker", "run"))
            assert self.client.run(verbs.Finish(task.task_id, task.attempt))
            self.oracle.finish(task.task_id)
        else:
            outcome = self.client.run(verbs.Defer(task.task_id, task.attempt, "no GPU", "device"))
            assert (outcome.state == "pending") == self.oracle.defer(task.task_id)
            assert outcome.defers == self.oracle.jobs[task.task_id].defers

    def _release(self, turn: Turn) -> None:
        released = self.client.run(verbs.Release(turn.mac, LANE, turn.token))
        assert (released.remaining, released.other_starved) == self.oracle.release(turn.mac)
        self.lost_turns.append(self.turns.pop(turn.mac))

    def _lists(self) -> list[list[str]]:
        keys = self.client.keys
        with self.store.pipeline(transaction=False) as pipeline:
            pipeline.lrange(keys.name("DEAD_LETTER"), 0, -1)
            for mac in MACS:
                pipeline.lrange(keys.device("QUEUE", mac, LANE), 0, -1)
            return [[item.decode() for item in items] for items in pipeline.execute()]


def _pick(things: dict[str, Any], pick: int) -> Any:
    return list(things.values())[pick % len(things)]
