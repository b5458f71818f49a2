"""The stateful test's other rules: turns, what is configured, dead letters, stale calls, rest.

The rule: as in `machine.py`; a program ends at rest, where the store must forget all that is over.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from fairlane import TaskState, verbs
from fairlane.verbs.cancel import OPEN, WAITING
from model.answers import q28_reconcile_leaves_a_healthy_store
from model.beside import a_pick
from model.book import ENDED
from model.entry import Entry, Turn
from model.machine import FATES, Program
from model.promises import tag_of
from support.dump import Seen

#: What a store keeps when all that was accepted is over: one key each, whatever happened.
LASTING: Final = ("CONFIG", "CLOCK", "TOTALS", "CAPACITY", "EVENTS", "DOORBELL", "GLOBAL_PENDING",
                  "WATERMARK", "SITES_PENDING", "EPOCH")  # fmt: skip


class Machine(Program):
    """All rules."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.lost_turns: list[tuple[str, str, str]] = [("02:00:00:00:00:01", self.lanes[0], "7")]

    def teardown(self) -> None:
        try:
            if self.is_healthy and self.macs:
                self._come_to_rest()
        finally:
            super().teardown()

    # Two-step turns.

    @rule(lane=a_pick, exclude=a_pick)
    def open_turn(self, lane: int, exclude: int) -> None:
        exclude_mac = self.macs[exclude % len(self.macs)] if exclude < 16 else ""
        name = self.lanes[lane % len(self.lanes)]
        turn = self.run(verbs.ClaimDevice(name, exclude_mac))
        opened = turn and Turn(turn.token, turn.deadline_ms)
        self.book.opened(turn.mac if turn else "", name, opened)
        if turn is None:
            assert not self.seen().scheduled(name)
        else:
            assert turn.deadline_ms == self.book.now + self.client.settings.turn_lease_ms
            self.lost_turns.append((turn.mac, name, turn.token))

    @rule(
        lane=a_pick,
        fates=st.lists(st.sampled_from(FATES), min_size=1, max_size=3),
        ran_ms=st.sampled_from([0, 40]),
    )
    def take_a_turn(self, lane: int, fates: list[str], ran_ms: int) -> None:
        """The document's flow: open, renew, pop one by one, release."""
        self.open_turn(lane, 63)
        turn = self.step.reply
        self.every_promise_is_kept()
        if turn is None:
            return
        at = sorted(self.book.turns).index((turn.mac, turn.lane))
        for fate in fates:
            self.renew(at)
            self.every_promise_is_kept()
            self.pop(at)
            leased = self.step.reply.leased
            self.every_promise_is_kept()
            if leased:
                self.meet(self.book.entries[leased[0].task_id], fate, ran_ms)
                self.every_promise_is_kept()
        self.release(at)

    def _turn(self, pick: int) -> tuple[str, str, str]:
        places = sorted(self.book.turns)
        place = places[pick % len(places)]
        return (*place, self.book.turns[place].token)

    @precondition(lambda self: self.book.turns)
    @rule(pick=a_pick)
    def renew(self, pick: int) -> None:
        mac, lane, token = self._turn(pick)
        status = self.run(verbs.Renew(mac, lane, token))
        settings = self.client.settings
        assert status.deadline_ms == self.book.now + settings.turn_lease_ms
        limits, most = self.book.limits_of(mac), settings.batch_size
        if limits.max_running:
            most = min(most, max(0, limits.max_running - self.book.leased_by(mac)))
        assert status.batch in (most, min(most, settings.min_batch_size)) or (
            limits.rate and status.batch < most
        )
        self.book.turns[mac, lane].deadline = status.deadline_ms

    @precondition(lambda self: self.book.turns)
    @rule(pick=a_pick)
    def pop(self, pick: int) -> None:
        mac, lane, token = self._turn(pick)
        popped = self.run(verbs.Pop(mac, lane, token, "me"))
        self.book.popped((mac, lane), popped.leased, popped.expired)

    @precondition(lambda self: self.book.turns)
    @rule(pick=a_pick)
    def release(self, pick: int) -> None:
        mac, lane, token = self._turn(pick)
        released = self.run(verbs.Release(mac, lane, token))
        del self.book.turns[mac, lane]
        waiting = self.book.these("pending", "delayed")
        assert released.remaining == sum((e.mac, e.lane) == (mac, lane) for e in waiting)

    def a_lost_turn_opens_nothing(self, pick: int, kind: type[Any]) -> None:
        """I10: a token that is not that of the device's open turn."""
        mac, lane, token = self.lost_turns[pick % len(self.lost_turns)]
        if self.book.turns and pick % 2:
            mac, lane = sorted(self.book.turns)[pick % len(self.book.turns)]
        held = self.book.turns.get((mac, lane))
        if held is None or held.token != token:
            self.refused(kind(mac, lane, token), "TURN_LOST")

    # What a device may.

    @rule(pick=a_pick, weight=st.sampled_from([0.25, 1, 1, 3, 49]),
          paused=st.sampled_from([False, False, True]))  # fmt: skip
    def configure(self, pick: int, weight: float, paused: bool) -> None:
        mac, _ = self.place(pick)
        self.run(verbs.Configure(mac, weight, paused))
        limits = self.book.limits_of(mac)
        limits.weight, limits.paused = weight, paused

    @rule(
        pick=a_pick,
        floor=st.sampled_from([0, 0, 1, 2]),
        most=st.sampled_from([0, 0, 1, 3]),
        rate=st.sampled_from([0, 0, 0.5, 2]),
    )
    def limit(self, pick: int, floor: int, most: int, rate: float) -> None:
        mac, _ = self.place(pick)
        verb = verbs.Configure(mac, min_running=floor, max_running=most, rate_per_s=rate)
        told, limits = self.run(verb), self.book.limits_of(mac)
        if rate != limits.rate:
            limits.leased_at.clear()
        limits.min_running, limits.max_running, limits.rate = floor, most, rate
        assert (told.min_running, told.max_running, told.rate_per_s) == (floor, most, rate)

    @rule(pick=a_pick, site=st.sampled_from(["", "a", "b"]))
    def move(self, pick: int, site: str) -> None:
        mac, _ = self.place(pick)
        self.run(verbs.Configure(mac, site=site))
        self.book.limits_of(mac).site = site

    # Dead letters.

    @precondition(lambda self: self.has("running"))
    @rule(pick=a_pick)
    def quarantine(self, pick: int) -> None:
        entry = self.pick(pick, "running")
        assert self.run(verbs.Quarantine(entry.task_id, entry.attempt, "no JSON"))
        self.book.totals["corrupt"] += 1
        self.book.end(entry.task_id, "dead")

    @precondition(lambda self: self.book.dead)
    @rule(pick=a_pick)
    def redrive(self, pick: int) -> None:
        ids = [self.book.dead[pick % len(self.book.dead)], "unknown"]
        told = self.run(verbs.Redrive(ids))
        assert told == tuple(map(self.book.redrive, ids))

    @precondition(lambda self: self.book.dead)
    @rule(pick=a_pick)
    def drop(self, pick: int) -> None:
        ids = ["unknown", self.book.dead[pick % len(self.book.dead)]]
        told = self.run(verbs.Drop(ids))
        assert told == tuple(map(self.book.drop, ids))

    @precondition(lambda self: self.book.entries)
    @rule(picks=st.lists(a_pick, min_size=1, max_size=4), states=st.sampled_from([WAITING, OPEN]))
    def cancel_many(self, picks: list[int], states: tuple[TaskState, ...]) -> None:
        every = [*self.book.entries.values()]
        chosen = [every[pick % len(every)] for pick in picks]
        meant = {entry.task_id for entry in chosen if entry.state in states}
        told = self.run(verbs.CancelMany([*(entry.task_id for entry in chosen), "unknown"], states))
        for entry, done in zip(chosen, told, strict=False):
            assert done == (entry.task_id in meant)
            if done:
                meant.remove(entry.task_id)
                self.book.end(entry.task_id, "cancelled")
        assert not meant
        assert told[-1] is False
        self.step.changed_nothing = not any(told)

    # Whoever comes too late.

    @rule(how=st.integers(0, 6), pick=a_pick, kind=st.integers(0, 3), off=st.sampled_from([-1, 1]))
    def somebody_comes_too_late(self, how: int, pick: int, kind: int, off: int) -> None:
        """I10, I18: stale attempts and tokens, unknown and known ids, at any time."""
        there = bool(self.book.entries)
        if how < 2 and there:
            self.a_stale_attempt(pick, off, kind)
        elif how < 4 and there:
            self.a_call_out_of_place(pick, kind)
        elif how == 4 and there:
            self.the_id_is_sent_again(pick, is_same=off > 0)
        elif how == 5:
            self.a_lost_turn_opens_nothing(pick, (verbs.Renew, verbs.Pop, verbs.Release)[kind % 3])
        else:
            self.an_unknown_task(kind if off > 0 else 4)

    @precondition(lambda self: self.has("leased", "running"))
    @rule(how=st.integers(0, 3), pick=a_pick, kind=st.integers(0, 3))
    def a_worker_comes_too_late(self, how: int, pick: int, kind: int) -> None:
        """I10: most that is stale comes from workers, about what runs elsewhere."""
        self.somebody_comes_too_late(how, pick * 3 + 1, kind, -1 if pick % 2 else 1)

    def _anyone(self, pick: int) -> Entry:
        """Return a task in any state, one that is leased or runs in two of three."""
        live = pick % 3 and self.has("leased", "running")
        states = {"leased", "running"} if live else {e.state for e in self.book.entries.values()}
        return self.pick(pick, *states)

    def a_stale_attempt(self, pick: int, off: int, kind: int) -> None:
        """I10: an attempt that is not the current one, of a task in any state."""
        entry = self._anyone(pick)
        attempt = max(1, entry.attempt + off)
        if attempt != entry.attempt:
            ended = "TASK_ENDED" if entry.state in ENDED else "STALE_ATTEMPT"
            self.refused(self._call(kind, entry.task_id, attempt), ended)

    def a_call_out_of_place(self, pick: int, kind: int) -> None:
        """I10: the current attempt, but of a task that waits, is not started or is over."""
        entry = self._anyone(pick)
        state, attempt = entry.state, max(1, entry.attempt)
        verb = self._call(kind, entry.task_id, attempt)
        early = {"pending": (0, 1), "delayed": (0, 1), "leased": (1, 2), "running": (0,)}
        if kind in early.get(state, ()):
            self.refused(verb, "STALE_ATTEMPT")
        elif state in ("expired", "cancelled") and kind < 2:
            # Fail and defer tell again what this attempt did before it was over.
            self.refused(verb, "TASK_ENDED")

    def an_unknown_task(self, kind: int) -> None:
        """I10: an id that nobody has."""
        verb = verbs.Cancel("unknown") if kind == 4 else self._call(kind, "unknown", 1)
        self.refused(verb, "TASK_NOT_FOUND")

    def _call(self, kind: int, task_id: str, attempt: int) -> verbs.Verb[Any]:
        calls: list[verbs.Verb[Any]] = [
            verbs.Start(task_id, attempt, "late", "another run"),
            verbs.Finish(task_id, attempt, {"late": True}),
            verbs.Fail(task_id, attempt, "late"),
            verbs.Defer(task_id, attempt, "late"),
        ]
        return calls[kind]

    # Those who keep house.

    @rule(what=st.integers(0, 7), pick=a_pick)
    def keep_house(self, what: int, pick: int) -> None:
        """What somebody does now and then."""
        match what:
            case 0 | 1:
                self.reconcile()
            case 2:
                self.watermark()
            case 3 | 4:
                self.measure((0, 50, 70, 91)[pick % 4])
            case 5:
                self.a_worker_stops(("host:1:a", "host:2:b")[pick % 2])
            case 6 if pick < 16:
                self.migrate(("fair", "aging")[pick % 2])
            case 7 if self.book.gate.receipts:
                self.a_key_ends(pick)

    def a_key_ends(self, pick: int) -> None:
        """I18: a key is sent again in the millisecond in which its time is over, or beside it."""
        receipts = sorted(self.book.gate.receipts.items())
        key, kept = receipts[pick % len(receipts)]
        self.time_passes(max(0, kept.until + pick % 3 - 1 - self.book.now))
        self.every_promise_is_kept()
        self.enqueue(pick, 0, 0, "", 0, key)

    def reconcile(self) -> None:
        """Q28: after a sweep, which does what time alone asks for, nothing is to be mended."""
        self.sweep(100)
        self.every_promise_is_kept()
        answer = self.run(verbs.Reconcile())
        q28_reconcile_leaves_a_healthy_store(answer)
        self.step.changed_nothing = True

    def watermark(self) -> None:
        """I25: the published level is what the data say."""
        level, seen = self.run(verbs.Watermark()), self.before
        waiting = seen.waiting()
        assert (level.total_pending, level.mac_count) == (
            *(waiting.total(), len({mac for mac, count in waiting.items() if count})),
        ) or len({mac for (mac, _), count in waiting.items() if count}) == level.mac_count
        assert level.leased == len(self.book.these("leased", "running"))
        assert (level.delayed, level.dead_letters) == (len(seen.delayed), len(seen.dead))
        living = [until for until in self.book.workers.values() if until > self.book.now]
        assert level.active_workers == len(living)

    @rule(lane=a_pick, turns=st.integers(2, 8))
    def i22_turn_by_turn(self, lane: int, turns: int) -> None:
        """I22: devices that wait throughout get shares within a quantum each, and one per guard.

        While no time passes nothing is settled, so what a device is ahead by at the beginning is
        all that may come on top.
        """
        name = self.lanes[lane % len(self.lanes)]
        if self.client.settings.policy != "fair":
            return
        self.claim(1, 63, lane)
        self.every_promise_is_kept()
        begin = self.before
        served: Counter[str] = Counter()
        quanta: dict[str, int] = {}
        throughout, guards = set(begin.scheduled(name)), 0
        for _ in range(turns):
            self.claim(1, 63, lane)
            leased, was = self.step.reply.leased, self.before
            self.every_promise_is_kept()
            if not leased:
                break
            (task,) = leased
            guards += int(was.virtual(name).get("turns", 0)) % 4 == 3
            paid = int(self.before.tasks[task.task_id]["paid"])
            paid *= "paid" not in was.tasks[task.task_id]
            served[task.mac] += paid
            quanta[task.mac] = max(quanta.get(task.mac, 0), paid)
            throughout &= set(self.before.scheduled(name))
        _check_shares(begin, name, sorted(throughout), served, quanta, guards)

    # At rest.

    def _come_to_rest(self) -> None:
        """Q28, Q27: nothing is to be mended; when all is over, nothing is left but one key each."""
        self.reconcile()
        self.every_promise_is_kept()
        for mac in self.macs:
            self.client.run(verbs.Configure(mac, 1, False, 0, 0, 0, ""))
        for entry in self.book.these("pending", "delayed", "leased", "running"):
            self.client.run(verbs.Cancel(entry.task_id, force=True))
        for worker in self.book.workers:
            self.client.run(verbs.Deregister(worker))
        dead = self.book.dead or ["unknown"]
        self.client.run(verbs.Drop(dead))
        self.book.now += 10_000_000
        self.client.run(verbs.Sweep(100))
        seen = self.seen()
        kept = {self.keys.name(lua) for lua in LASTING}
        kept |= {self.keys.lane(lua, lane) for lua in ("VIRTUAL", "TIMES") for lane in self.lanes}
        # A record goes when its retention is over.
        kept |= {self.keys.task(task) for task in seen.tasks if seen.lives_ms(task) > 0}
        assert set(seen.raw) <= kept, f"left at rest: {set(seen.raw) - kept}"
        counted = seen.hash(self.keys.name("SITES_PENDING"))
        assert set(counted) <= {":full", "full:default", ":store"}, counted


def _check_shares(
    begin: Seen,
    lane: str,
    macs: list[str],
    served: Counter[str],
    quanta: dict[str, int],
    guards: int,
) -> None:
    # A device's floor is served before all others, whatever it had.
    macs = [mac for mac in macs if not begin.meta(mac).get("min_running")]
    weight = {mac: float(begin.meta(mac).get("weight", 1)) for mac in macs}
    most = max(quanta.values(), default=0)
    for one, other in combinations(macs, 2):
        if begin.site(one) != begin.site(other):
            continue
        tags = [tag_of(begin, mac, lane) or 0 for mac in (one, other)]
        apart = abs(served[one] / weight[one] - served[other] / weight[other])
        quantum = sum(quanta.get(mac, most) / weight[mac] for mac in (one, other))
        slack = guards * most * max(1 / weight[one], 1 / weight[other]) + 1_000
        assert apart <= abs(tags[0] - tags[1]) + quantum + slack, (one, other)
