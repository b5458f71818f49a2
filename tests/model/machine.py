"""Tasks on their way: leased, run and ended in every way, swept, purged, and every call sent again.

The rule: as in `beside.py`, which has the store, the oracle, time and the way in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from fairlane import verbs
from fairlane.model import Receipt
from fairlane.verbs import Verb
from model.answers import i16_what_a_handler_gets
from model.beside import Beside, a_limit, a_pick
from model.entry import Entry
from model.promises import Step
from support.store import mac

#: What may become of a leased task.
FATES: Final = (
    *("is done", "is done", "is done", "runs on", "runs on", "is left", "fails", "fails"),
    *("fails for good", "defers", "defers its device", "early", "early device"),
)


class Program(Beside):
    """Rules of one task's life."""

    @initialize(
        devices=st.integers(1, 5),
        picks=st.lists(a_pick, min_size=1, max_size=8),
        slots=st.integers(0, 4),
    )
    def begin(self, devices: int, picks: list[int], slots: int) -> None:
        """Some devices have tasks already, and some workers are there."""
        self.macs = [mac(number) for number in range(1, devices + 1)]
        self.every_promise_is_kept()
        self.beat("host:1:a", 3, slots, 1)
        self.every_promise_is_kept()
        self.enqueue_many(picks, 0, "")

    # To a worker.

    @rule(want=st.sampled_from([0, 1, 1, 2, 5]), exclude=a_pick, lane=a_pick)
    def claim(self, want: int, exclude: int, lane: int) -> None:
        exclude_mac = self.macs[exclude % len(self.macs)] if exclude < 16 else ""
        name = self.lanes[lane % len(self.lanes)]
        got = self.run(verbs.Claim(name, want, "me", exclude_mac))
        self.book.claimed(name, got.leased, got.expired)
        for task in got.leased:
            assert task.attempt == self.book.entries[task.task_id].attempt

    @rule(
        want=st.sampled_from([0, 1, 2, 4]),
        lane=a_pick,
        fates=st.lists(st.sampled_from(FATES), min_size=1, max_size=4),
        ran_ms=st.sampled_from([0, 1, 40, 2_500]),
    )
    def serve(self, want: int, lane: int, fates: list[str], ran_ms: int) -> None:
        """What a dispatcher and its workers do: each leased task meets a fate, one by one."""
        self.claim(want, 63, lane)
        leased = self.step.reply.leased
        self.every_promise_is_kept()
        for task, fate in zip(leased, fates * len(leased), strict=False):
            self.meet(self.book.entries[task.task_id], fate, ran_ms)
            self.every_promise_is_kept()

    @rule(
        fates=st.lists(st.sampled_from(FATES), min_size=2, max_size=5),
        apart_ms=st.sampled_from([0, 300, 16_000, 30_000]),
        picks=st.lists(a_pick, max_size=3),
    )
    def work_goes_on(self, fates: list[str], apart_ms: int, picks: list[int]) -> None:
        """Two rounds of service in every lane, with time, a heartbeat and arrivals between."""
        for at, lane in enumerate([*self.lanes, *self.lanes]):
            self.serve(0 if at % 2 else 2, lane=self.lanes.index(lane), fates=fates, ran_ms=40)
            self.time_passes(apart_ms)
            self.every_promise_is_kept()
            self.beat("host:1:a", 3, 2, 1)
            self.every_promise_is_kept()
            if picks:
                self.enqueue_many(picks, 0, "")
                self.every_promise_is_kept()

    @precondition(lambda self: self.has("leased", "running"))
    @rule(pick=a_pick, fate=st.sampled_from(FATES), ran_ms=st.sampled_from([0, 1, 40, 2_500]))
    def a_fate(self, pick: int, fate: str, ran_ms: int) -> None:
        """A task that was leased some time ago meets a fate."""
        self.meet(self.pick(pick, "leased", "running"), fate, ran_ms)

    def meet(self, entry: Entry, fate: str, ran_ms: int) -> None:
        """A task is put off before its start, or started and then ended in one way or another."""
        if fate == "is left":
            return
        if fate.startswith("early"):
            self.defer(entry, "device" if fate.endswith("device") else "task")
            return
        if entry.state == "leased":
            self.start(entry)
            self.every_promise_is_kept()
        match fate:
            case "is done":
                self.finish(entry, ran_ms)
            case "fails" | "fails for good":
                self.fail(entry, final=fate == "fails for good")
            case "defers":
                self.defer(entry, "task")
            case "defers its device":
                self.defer(entry, "device")

    def start(self, entry: Entry) -> None:
        run_id = f"run {entry.attempt}"
        started = self.run(verbs.Start(entry.task_id, entry.attempt, "w", run_id))
        self.book.start(entry.task_id, run_id)
        i16_what_a_handler_gets(started, self.book)

    @rule(
        worker=st.sampled_from(["host:1:a", "host:2:b"]),
        lanes=st.integers(1, 3),
        slots=st.integers(0, 4),
        stale=a_pick,
    )
    def beat(self, worker: str, lanes: int, slots: int, stale: int) -> None:
        active = [(entry.task_id, entry.attempt) for entry in self.book.these("running")]
        active += [(e.task_id, e.attempt) for e in self.book.these("leased", *("done", "failed"))]
        active += [("unknown", 1)] * (stale == 0)
        active += [(e.task_id, max(1, e.attempt - 1)) for e in self.book.these("running")][:1]
        served = [name for at, name in enumerate(self.lanes) if lanes >> at & 1] or self.lanes
        told = self.run(verbs.Heartbeat(worker, served, slots, active=active))
        assert set(told) == self.book.beat(worker, active)

    def a_worker_stops(self, worker: str) -> None:
        gone = self.run(verbs.Deregister(worker))
        assert gone == (self.book.workers.pop(worker, None) is not None)
        self.step.changed_nothing = not gone

    # Back, and out.

    def finish(self, entry: Entry, ran_ms: int) -> None:
        self.book.now += ran_ms
        assert self.run(verbs.Finish(entry.task_id, entry.attempt, {"n": ran_ms}))
        self.book.end(entry.task_id, "done")

    def fail(self, entry: Entry, *, final: bool) -> None:
        verb = verbs.Fail(entry.task_id, entry.attempt, "boom", "Traceback", final)
        outcome = self.run(verb)
        entry.due_at = outcome.due_ms
        assert outcome.state == self.book.fail(entry.task_id, final)

    def defer(self, entry: Entry, scope: Literal["task", "device"]) -> None:
        outcome = self.run(verbs.Defer(entry.task_id, entry.attempt, "busy", scope))
        assert outcome.state == self.book.defer(entry.task_id, outcome.due_ms, scope)
        assert outcome.defers == entry.defers

    @precondition(lambda self: self.book.entries)
    @rule(pick=a_pick, force=st.booleans())
    def cancel(self, pick: int, force: bool) -> None:
        entry = self.pick(pick, *{e.state for e in self.book.entries.values()})
        verb = verbs.Cancel(entry.task_id, force)
        if entry.state == "running" and not force:
            self.refused(verb, "TASK_RUNNING")
        elif entry.state in ("done", "failed", "expired", "dead"):
            self.refused(verb, "TASK_ENDED")
        else:
            was_cancelled = entry.state == "cancelled"
            assert self.run(verb) == (not was_cancelled)
            self.step.changed_nothing = was_cancelled
            if not was_cancelled:
                self.book.end(entry.task_id, "cancelled")

    @rule(limit=a_limit)
    def sweep(self, limit: int) -> None:
        throttled = {
            lane: sum(
                due <= self.book.now for due in self.before.scores("THROTTLED", lane).values()
            )
            for lane in self.lanes
        }
        swept = self.run(verbs.Sweep(limit))
        lost, dead, gone = self.book.sweep(limit, throttled)
        assert (set(swept.lost), set(swept.dead), set(swept.workers)) == (lost, dead, gone)

    @rule(limit=a_limit, until_none=st.booleans())
    def purge(self, limit: int, until_none: bool) -> None:
        for _ in range(60):
            expired = self.run(verbs.Purge(limit))
            self.book.purged(expired)
            if not expired or not until_none:
                break
        if not expired:
            late = self.book.these("pending", "delayed")
            assert not [e.task_id for e in late if e.expires_at < self.book.now]

    @precondition(lambda self: self.last is not None)
    @rule()
    def the_reply_was_lost(self) -> None:
        """A client sends again what may be sent again: the second run does what `Twice` says."""
        verb, (items, first) = self.last, self.answered
        assert verb is not None
        match verb:
            case verbs.Sweep(limit=limit):
                self.sweep(limit)
            case verbs.Purge(limit=limit):
                self.purge(limit, until_none=False)
            case verbs.Enqueue() | verbs.EnqueueMany():
                (again,) = self.client.run_many([verb])
                self.answer(verb, again)
                self.answered = (items, again)
                verdicts = again if isinstance(again, list) else [again]
                for item, verdict in zip(items, verdicts, strict=True):
                    self._i07_i18_i19_verdict(item, verdict)
                    assert not isinstance(verdict, Receipt) or verdict.known
            case verbs.Measure(used_bytes=percent):
                self.measure(percent)
            case verbs.Finish() | verbs.Cancel() | verbs.Deregister() | verbs.Quarantine():
                self.changes_nothing(verb, answer=False)
            case (
                verbs.Redrive(task_ids=ids)
                | verbs.Drop(task_ids=ids)
                | verbs.CancelMany(task_ids=ids)
            ):
                self.changes_nothing(verb, answer=(False,) * len(ids))
            case _:
                self.changes_nothing(verb, answer=first)

    def changes_nothing(self, verb: Verb[Any], answer: object) -> None:
        """Run a verb that must answer this and change nothing (I10)."""
        assert self.client.run(verb) == answer
        self.step = Step(verb, answer, changed_nothing=True)

    def measure(self, percent: int) -> None:
        told = self.run(verbs.Measure(percent, 100))
        assert told.is_full == self.book.gate.measure(percent, self.book.now + 30_000)

    def migrate(self, policy: str) -> None:
        settings = replace(self.client.settings, policy=policy)
        self.was_migrated |= settings != self.client.settings
        self.client.migrate(settings)
        self.book.settings = self.book.gate.settings = self.client.settings
        self.last = None
