"""Any verbs in any order, under every policy and order of a queue: the store is healthy throughout.

The rule: what happens is told by a seed, and after each step every invariant is recounted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from fairlane import verbs
from fairlane.errors import FairlaneError
from fairlane.model import Leased, Turn
from support.store import LANE, Store, mac
from verbs.conftest import Open

LANES = (LANE, "ocr")
STEPS = 250


class Chance:
    """A store to which things happen."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store, self.choose = store, random.Random(seed)
        self.leased: list[Leased] = []
        self.turns: list[Turn] = []
        self.ids: list[str] = []
        self.deeds: list[Callable[[], object]] = [
            *[self.enqueue] * 4, self.enqueue_many, *[self.claim] * 4, *[self.start] * 3,
            *[self.finish] * 3, self.fail, self.defer, self.cancel, self.configure, self.limit,
            self.move, self.time_passes, self.sweep, self.purge, self.beat, self.open_turn,
            *[self.pop] * 2, self.release, self.redrive, self.reconcile,
        ]  # fmt: skip

    def step(self) -> str:
        """Do something; return what it was."""
        deed = self.choose.choice(self.deeds)
        # An attempt or a turn may be over by now.
        with suppress(FairlaneError):
            deed()
        return deed.__name__

    def _mac(self) -> str:
        return mac(self.choose.randrange(6))

    def _task(self) -> verbs.Enqueue:
        choose = self.choose
        verb = verbs.Enqueue(
            self._mac(),
            choose.choice(LANES),
            {"t": "x" * choose.choice((0, 0, 2_000))},
            ttl_ms=choose.choice((None, None, None, 20_000)),
            cost_ms=choose.choice((None, None, 1, 10**8)),
            site=choose.choice((None, None, "a", "b")),
        )
        self.ids.append(verb.task_id)
        return verb

    def enqueue(self) -> None:
        self.store.run(self._task())

    def enqueue_many(self) -> None:
        self.store.run(verbs.EnqueueMany([self._task() for _ in range(6)]))

    def claim(self) -> None:
        exclude_mac = self.choose.choice(("", self._mac()))
        want = self.choose.randrange(1, 8)
        claim = verbs.Claim(self.choose.choice(LANES), want, exclude_mac=exclude_mac)
        self.leased += self.store.run(claim).leased

    def _any_leased(self) -> Leased:
        return self.choose.choice(self.leased or [Leased("unknown", 1, LANE, mac(1), b"")])

    def start(self) -> None:
        self.store.start(self._any_leased())

    def finish(self) -> None:
        self.store.clock.advance(self.choose.choice((0, 1, 50, 900)))
        self.store.finish(self._any_leased())

    def fail(self) -> None:
        task, final = self._any_leased(), self.choose.random() < 0.2
        self.store.run(verbs.Fail(task.task_id, task.attempt, "error", "", final))

    def defer(self) -> None:
        task, scope = self._any_leased(), "task" if self.choose.random() < 0.5 else "device"
        self.store.run(verbs.Defer(task.task_id, task.attempt, "", scope))  # type: ignore[arg-type]

    def cancel(self) -> None:
        if self.ids:
            self.store.run(verbs.Cancel(self.choose.choice(self.ids), force=True))

    def configure(self) -> None:
        weight, paused = self.choose.choice((0.001, 1, 1, 7)), self.choose.random() < 0.3
        self.store.run(verbs.Configure(self._mac(), weight, paused))

    def limit(self) -> None:
        pick = self.choose.choice
        floor, most, rate = pick((0, 0, 2)), pick((0, 0, 1, 3)), pick((0, 0, 0.5, 4))
        verb = verbs.Configure(self._mac(), min_running=floor, max_running=most, rate_per_s=rate)
        self.store.run(verb)

    def move(self) -> None:
        self.store.run(verbs.Configure(self._mac(), site=self.choose.choice(("", "a", "b"))))

    def time_passes(self) -> None:
        self.store.clock.advance(self.choose.choice((1, 300, 5_000, 31_000, 70_000)))

    def sweep(self) -> None:
        self.store.run(verbs.Sweep(self.choose.choice((1, 100))))

    def purge(self) -> None:
        self.store.run(verbs.Purge(self.choose.choice((1, 100))))

    def beat(self) -> None:
        active = [(task.task_id, task.attempt) for task in self.leased[-5:]]
        self.store.run(verbs.Heartbeat("host:1:a", list(LANES), 3, active=active))

    def open_turn(self) -> None:
        turn = self.store.run(verbs.ClaimDevice(self.choose.choice(LANES)))
        self.turns += [turn] if turn else []

    def pop(self) -> None:
        if self.turns:
            turn = self.turns[-1]
            self.leased += self.store.run(verbs.Pop(turn.mac, turn.lane, turn.token)).leased

    def release(self) -> None:
        if self.turns:
            turn = self.turns.pop()
            self.store.run(verbs.Release(turn.mac, turn.lane, turn.token))

    def redrive(self) -> None:
        dead = [letter.task_id for letter in self.store.run(verbs.DeadLetters())]
        self.store.run(verbs.Redrive(dead[:3] or ["unknown"]))

    def reconcile(self) -> None:
        self.store.run(verbs.Sweep())  # what time alone lets in
        assert self.store.run(verbs.Reconcile()) == (-1, ()), "a healthy store is left as it is"

    def end(self) -> None:
        """Lift what holds anybody back, and let all end."""
        store = self.store
        for number in range(6):
            store.run(verbs.Configure(mac(number), 1, False, 0, 0, 0, ""))
        for task_id in self.ids:
            if store.redis.exists(store.keys.task(task_id)):
                ended = store.state(task_id) in ("done", "failed", "expired", "cancelled", "dead")
                if not ended:
                    store.run(verbs.Cancel(task_id, force=True))
        store.clock.advance(700_000)
        store.run(verbs.Sweep())


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("order", ["fifo", "lifo"])
@pytest.mark.parametrize("policy", ["fair", "aging"])
def test_any_verbs_in_any_order(open_store: Open, policy: str, order: str, seed: int) -> None:
    store = open_store(policy=policy, order=order, max_attempts=2, max_per_mac_pending=12)
    chance = Chance(store, seed)
    done = [chance.step() for _ in range(STEPS)]
    chance.end()
    left = store.redis.keys("*")
    assert not [name for name in left if "@" in name or ":meta:" in name or ":queue:" in name]
    assert {*done} == {deed.__name__ for deed in chance.deeds}
