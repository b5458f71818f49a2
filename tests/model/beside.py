"""Any program of all verbs, run by the real scripts under a virtual clock, beside the oracle.

The rule: after every step the whole store is read, and every invariant I01 … Q28 is checked: those
of one moment (`support/invariants.py`), those between two and the oracle (`promises.py`), and what
the store says of itself (`answers.py`). A program is a few devices with many tasks, and limits so
small that it meets all of them.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fairlane import Client, Settings, verbs
from fairlane.errors import FairlaneError
from fairlane.model import Receipt, Refusal
from fairlane.payload import encode
from fairlane.verbs import Verb
from model.answers import i25_what_is_shown_is_recounted
from model.book import Book
from model.entry import Entry
from model.promises import PROMISES, Step
from support.dump import Seen
from support.invariants import check
from support.servers import Server

START_MS: Final = 1_796_000_000_000
#: Limits within the reach of a short program.
SMALL: Final[dict[str, Any]] = {
    "max_total_pending": 18,
    "max_per_mac_pending": 6,
    "low_mark_percent": 60,
    "max_attempts": 2,
    "max_defers": 2,
    "dead_letter_cap": 3,
    "batch_size": 3,
    "task_ttl_ms": 400_000,
    "turn_lease_ms": 40_000,
    "idempotency_cap": 3,
    "idempotency_ttl_ms": 90_000,
}
SPELLINGS: Final = (str, str.upper, lambda text: text.replace(":", "-"))
a_pick = st.integers(0, 63)
a_limit = st.sampled_from([1, 100])


class Beside(RuleBasedStateMachine):
    """One store and one oracle, which are told the same."""

    def __init__(self, server: Server, **settings: Any) -> None:
        super().__init__()
        server.client.flushall()
        self.redis: Any = server.client
        given = Settings(**{"store_url": server.url, **SMALL, **settings})
        self.book = Book(given, START_MS)
        self.client = Client(given, clock=lambda: self.book.now)
        self.keys = self.client.keys
        self.redis.set(self.keys.clock, 1)
        self.client.ping()
        self.macs: list[str] = []
        self.lanes = list(given.lanes)
        self.step = Step()
        self.last: Verb[Any] | None = None
        self.answered: tuple[list[verbs.Enqueue], Any] = ([], None)
        self.is_healthy, self.was_migrated = True, False
        self.before = self.seen()

    def teardown(self) -> None:
        self.client.close()

    # What is checked after every step.

    def seen(self) -> Seen:
        settings, migrated = self.client.settings, self.was_migrated
        return Seen(self.redis, self.keys, settings, self.book.now, was_migrated=migrated)

    @invariant()
    def every_promise_is_kept(self) -> None:
        self.book.forget_drained()
        now = self.seen()
        check(now)
        for promise in PROMISES:
            promise(self.before, now, self.book, self.step)
        i25_what_is_shown_is_recounted(self.client, self.macs, now)
        # A dispatcher wakes: who rings next is seen.
        self.redis.delete(self.keys.doorbell)
        now.raw.pop(self.keys.doorbell, None)
        self.before, self.step, self.is_healthy = now, Step(), True

    def run(self, verb: Verb[Any]) -> Any:
        """Run a verb; what it answers is checked with the step."""
        reply = self.client.run(verb)
        self.answer(verb, reply)
        return reply

    def answer(self, verb: Verb[Any], reply: Any) -> None:
        """Take note of what was run."""
        self.step = Step(verb, reply)
        self.last = verb if verb.REPEATABLE else None
        self.answered, self.is_healthy = ([], reply), False

    def refused(self, verb: Verb[Any], *codes: str) -> None:
        """Run a verb that must raise one of these errors and change nothing (I10)."""
        with pytest.raises(FairlaneError) as raised:
            self.client.run(verb)
        assert raised.value.code in codes
        self.step = Step(changed_nothing=True)

    def pick(self, pick: int, *states: str) -> Entry:
        there = self.book.these(*states)
        return there[pick % len(there)]

    def has(self, *states: str) -> bool:
        return bool(self.book.these(*states))

    def place(self, pick: int) -> tuple[str, str]:
        return self.macs[pick % len(self.macs)], self.lanes[pick % 7 % len(self.lanes)]

    # Time.

    @rule(ms=st.sampled_from([1, 300, 5_000, 31_000, 70_000]))
    def time_passes(self, ms: int) -> None:
        self.book.now += ms
        self.last = None

    @precondition(lambda self: self.book.deadlines())
    @rule(which=st.sampled_from([0, 0, 1, 3, -1]), off_ms=st.sampled_from([-1, 0, 0, 1]))
    def time_passes_until_something_ends(self, which: int, off_ms: int) -> None:
        """A lease, a delay, a backoff, a turn, a TTL: to the millisecond, before and after."""
        times = self.book.deadlines()
        at = times[min(which, len(times) - 1)] + off_ms
        self.time_passes(max(0, at - self.book.now))

    # In.

    def _offer(
        self, pick: int, ttl_ms: int, cost_ms: int, site: str, bytes_: int, key: str = ""
    ) -> verbs.Enqueue:
        address, spelling = self.macs[pick % len(self.macs)], SPELLINGS[pick % 3]
        kind = self.client.settings.task_types[pick % 7 % len(self.client.settings.task_types)]
        task_id = f"t{len(self.book.entries):03}.{pick}.{self.book.totals['accepted']}"
        data = {"n": pick, "x": "é" * bytes_}
        options: dict[str, Any] = {"ttl_ms": ttl_ms or None, "cost_ms": cost_ms or None}
        options["site"] = site or None
        if not key:
            return verbs.Enqueue(spelling(address), kind.name, data, task_id=task_id, **options)
        # An id of the caller's would be part of what the key stands for.
        verb = verbs.Enqueue(spelling(address), kind.name, data, idempotency_key=key, **options)
        object.__setattr__(verb, "task_id", task_id)
        return verb

    def _entry(self, verb: verbs.Enqueue) -> Entry:
        settings, now = self.client.settings, self.book.now
        return Entry(
            task_id=verb.task_id,
            mac=verb.mac,
            task_type=verb.task_type,
            lane=settings.lane_by_type[verb.task_type],
            payload=verb.payload.decode(),
            created_at=now,
            expires_at=now + (verb.ttl_ms or settings.task_ttl_ms),
            number=0,
        )

    def _i07_i18_i19_verdict(self, verb: verbs.Enqueue, verdict: object) -> None:
        """I07, I18, I19: the published rule alone lets a task in; an id, a key is one task."""
        book, key = self.book, verb.receipt()[:32]
        body = verb.mac, verb.task_type, verb.payload, verb.ttl_ms, verb.cost_ms, verb.site
        told = book.offer(self._entry(verb), verb.site, key, body)
        if isinstance(verdict, Refusal):
            assert (verdict.reason, verdict.retry_after_ms >= 1_000) == (told, True)
        elif isinstance(verdict, FairlaneError):
            assert told == {"TASK_CONFLICT": "conflict", "IDEMPOTENCY_CONFLICT": "mismatch"}.get(
                verdict.code
            )
        else:
            assert isinstance(verdict, Receipt), verdict
            assert told == ("known" if verdict.known else "accepted")
            kept = book.gate.receipt(key, book.now)
            assert verdict.task_id == (kept.task_id if kept else verb.task_id)
            entry = book.entries.get(verdict.task_id)
            assert verdict.state == (entry and entry.state)
            if not kept:
                assert entry is not None
                assert verdict.created_at_ms == entry.created_at
            assert verdict.known or verdict.pending == book.waiting_of(verb.mac)

    @rule(
        pick=a_pick,
        ttl_ms=st.sampled_from([0, 0, 0, 20_000]),
        cost_ms=st.sampled_from([0, 0, 1, 5_000]),
        site=st.sampled_from(["", "", "a", "b"]),
        bytes_=st.sampled_from([0, 0, 1_000]),
        key=st.sampled_from(["", "", "k1", "k2", "k3", "k4", "k5"]),
    )
    def enqueue(
        self, pick: int, ttl_ms: int, cost_ms: int, site: str, bytes_: int, key: str
    ) -> None:
        verb = self._offer(pick, ttl_ms, cost_ms, site, bytes_, key)
        (verdict,) = self.client.run_many([verb])
        self.answer(verb, verdict)
        self.answered = ([verb], verdict)
        self._i07_i18_i19_verdict(verb, verdict)
        self.step.refused = isinstance(verdict, Refusal)
        self.step.changed_nothing = isinstance(verdict, FairlaneError)

    @rule(
        picks=st.lists(a_pick, min_size=1, max_size=8),
        ttl_ms=st.sampled_from([0, 0, 20_000]),
        site=st.sampled_from(["", "a"]),
    )
    def enqueue_many(self, picks: list[int], ttl_ms: int, site: str) -> None:
        # An id stands twice when its pick does: the second is known.
        keys = {at: f"k{at}" for at in range(6)}
        items = [self._offer(pick, ttl_ms, 0, site, 0, keys.get(pick, "")) for pick in picks]
        verdicts = self.run(verbs.EnqueueMany(items))
        self.answered = (items, verdicts)
        for verb, verdict in zip(items, verdicts, strict=True):
            self._i07_i18_i19_verdict(verb, verdict)

    def the_id_is_sent_again(self, pick: int, is_same: bool) -> None:
        """I18: with the same body it is the same task, with another one a conflict."""
        entry = self.pick(pick, *{e.state for e in self.book.entries.values()})
        data = {"other": 1}
        verb = verbs.Enqueue(entry.mac, entry.task_type, data, task_id=entry.task_id)
        if not is_same:
            self.refused(verb, "TASK_CONFLICT")
            return
        object.__setattr__(verb, "payload", entry.payload.encode())
        assert encode("data", data, 99) != verb.payload
        receipt = self.run(verb)
        self.answered = ([verb], receipt)
        assert (receipt.known, receipt.state) == (True, entry.state)
        self.step.changed_nothing = True
