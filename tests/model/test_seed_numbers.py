"""Each formula of the document's section 四 in the `seed` preset, with the document's numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from fairlane import Receipt, Refusal, verbs
from fairlane.errors import TurnLost
from fairlane.model import Device, Leased, Outcome, TaskState, Turn
from support.store import Store, mac

LANE = "main"


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = Store(store_url, preset="seed")
    yield store
    store.check()
    store.close()


def claim(store: Store, exclude: int | None = None) -> Turn:
    turn = store.run(verbs.ClaimDevice(LANE, "" if exclude is None else mac(exclude)))
    assert turn is not None
    return turn


def batch(store: Store, turn: Turn) -> int:
    return store.run(verbs.Renew(turn.mac, LANE, turn.token)).batch


def pop(store: Store, turn: Turn) -> Leased:
    (leased,) = store.run(verbs.Pop(turn.mac, LANE, turn.token)).leased
    return leased


def release(store: Store, turn: Turn) -> None:
    store.run(verbs.Release(turn.mac, LANE, turn.token))


def serve(store: Store, exclude: int | None = None) -> Leased:
    """Take one task in a turn of its own."""
    turn = claim(store, exclude)
    leased = pop(store, turn)
    release(store, turn)
    return leased


def defer(store: Store, leased: Leased) -> Outcome:
    return store.run(verbs.Defer(leased.task_id, leased.attempt, "no GPU", "device"))


def device(store: Store, number: int) -> Device:
    return store.client.device(mac(number))


def fill(store: Store, tasks: int, *, each: int = 200) -> int:
    """Store so many tasks, `each` of a device; return how many were accepted."""
    items = [verbs.Enqueue(mac(1 + at // each), "text", {}) for at in range(tasks)]
    verdicts = [
        verdict
        for at in range(0, tasks, 1_000)
        for verdict in store.client.enqueue_many(items[at : at + 1_000])
    ]
    return sum(isinstance(verdict, Receipt) for verdict in verdicts)


def refusal(store: Store, number: int) -> str:
    """Offer a task; return why it was refused, or nothing when it was accepted."""
    verdict = store.run(verbs.Enqueue(mac(number), "text", {}))
    return verdict.reason if isinstance(verdict, Refusal) else ""


class TestScore:
    def test_it_is_the_wait_in_seconds_at_any_time_and_stays_600_past_w_max(
        self, store: Store
    ) -> None:
        start_ms = store.clock.now_ms
        store.enqueue(1)
        for waited_ms, score in ((0, 0), (1, 0.001), (15_200, 15.2), (600_000, 600), (10**6, 600)):
            store.clock.now_ms = start_ms + waited_ms
            assert device(store, 1).score == score

    def test_it_follows_the_oldest_task_wherever_that_stands(self, store: Store) -> None:
        start_ms = store.clock.now_ms
        for number in range(5):
            store.enqueue(1, task_id=f"t{number}")
            store.clock.advance(1_000)
        turn = claim(store)
        popped = {leased.task_id: leased for leased in (pop(store, turn) for _ in range(5))}
        assert list(popped) == ["t4", "t3", "t2", "t1", "t0"]
        store.enqueue(1)
        for task_id in ("t1", "t3", "t0"):
            defer(store, popped[task_id])
        assert device(store, 1).oldest_ms == start_ms
        assert pop(store, turn).task_id == "t0"
        assert device(store, 1).oldest_ms == start_ms + 1_000
        release(store, turn)

    def test_the_highest_goes_first(self, store: Store) -> None:
        for number in (3, 1, 2):
            store.enqueue(number)
            store.clock.advance(10)
        assert [serve(store).mac for _ in range(3)] == [mac(3), mac(1), mac(2)]

    def test_a_device_that_enqueues_once_rises_like_one_that_enqueues_often(
        self, store: Store
    ) -> None:
        store.enqueue(1)
        for _ in range(3):
            store.clock.advance(1_000)
            store.enqueue(2)
        assert claim(store).mac == mac(1)

    def test_past_w_max_all_tie_and_take_turns(self, store: Store) -> None:
        for number in (1, 2, 3):
            store.enqueue(number, 10)
            store.clock.advance(1_000)
        store.clock.advance(600_000)
        served: Counter[str] = Counter()
        last = None
        for _ in range(30):
            leased = serve(store, last)
            last = int(leased.mac[-2:], 16)
            served[leased.mac] += 1
        assert set(served.values()) == {10}


class TestBatch:
    @pytest.mark.parametrize(("waited_ms", "size"), [(0, 10), (29_999, 10), (30_000, 1)])
    def test_it_is_one_while_another_device_waits_30_s(
        self, store: Store, waited_ms: int, size: int
    ) -> None:
        store.enqueue(1)
        store.clock.advance(1)
        store.enqueue(2)
        store.clock.advance(waited_ms)
        turn = claim(store)
        assert turn.mac == mac(1)
        assert batch(store, turn) == size

    def test_it_is_ten_for_a_device_that_only_starves_itself(self, store: Store) -> None:
        store.enqueue(1)
        store.clock.advance(3_000_000)
        assert batch(store, claim(store)) == 10

    def test_a_device_in_backoff_or_in_its_own_turn_makes_nobody_hurry(self, store: Store) -> None:
        store.enqueue(1)
        defer(store, serve(store))
        store.enqueue(2)
        store.enqueue(3)
        store.clock.advance(29_999)
        assert claim(store).mac == mac(2)
        third = claim(store)
        store.run(verbs.Renew(third.mac, LANE, third.token))
        assert batch(store, third) == 10


class TestBackoff:
    def test_it_is_30_60_120_240_480_and_the_sixth_defer_is_the_end(self, store: Store) -> None:
        task_id = store.client.enqueue(mac(1), "ocr", {"file": "x"}).task_id
        for defers, seconds in enumerate((30, 60, 120, 240, 480), start=1):
            due_ms = store.clock.now_ms + seconds * 1_000
            assert defer(store, serve(store)) == Outcome(TaskState.PENDING, due_ms, defers)
            store.clock.now_ms = due_ms - 1
            assert store.run(verbs.ClaimDevice(LANE)) is None
            store.clock.advance(1)
        assert defer(store, serve(store)) == Outcome(TaskState.DEAD, 0, 6)
        (letter,) = store.run(verbs.DeadLetters())
        assert (letter.task_id, letter.cause, letter.error) == (task_id, "defer_limit", "no GPU")
        assert letter.payload == b'{"file":"x"}'

    def test_it_is_capped_at_600(self, store_url: str) -> None:
        store = Store(store_url, preset="seed", max_defers=7)
        store.enqueue(1, ttl_ms=10**8)
        waits = []
        for _ in range(7):
            outcome = defer(store, serve(store))
            waits.append(outcome.due_ms - store.clock.now_ms)
            store.clock.now_ms = outcome.due_ms
        store.close()
        assert waits[4:] == [480_000, 600_000, 600_000]

    def test_the_whole_device_waits_whatever_it_enqueues_and_even_if_it_drains(
        self, store: Store
    ) -> None:
        other, _ = store.enqueue(1, 2)
        turn = claim(store)
        deferred = pop(store, turn)
        defer(store, deferred)
        release(store, turn)
        store.client.cancel(other)
        store.client.cancel(deferred.task_id)
        store.enqueue(1)
        assert store.run(verbs.ClaimDevice(LANE)) is None
        assert device(store, 1).lanes[0].held_by == "backoff"
        store.clock.advance(30_000)
        assert claim(store).mac == mac(1)

    def test_with_several_deferred_tasks_it_lasts_until_the_last_due_time(
        self, store: Store
    ) -> None:
        store.enqueue(1, 2)
        defer(store, serve(store))
        store.clock.advance(30_000)
        turn = claim(store)
        second, first = pop(store, turn), pop(store, turn)
        assert defer(store, second).defers == 2
        assert defer(store, first).defers == 1
        release(store, turn)
        assert device(store, 1).lanes[0].until_ms == store.clock.now_ms + 60_000


class TestOverload:
    def test_everybody_is_refused_while_g_is_over_5000(self, store: Store) -> None:
        assert fill(store, 5_100) == 5_001
        assert store.run(verbs.Overload()).overloaded
        assert refusal(store, 99) == "global_full"
        serve(store)
        assert not store.run(verbs.Overload()).overloaded
        assert refusal(store, 99) == ""

    def test_everybody_is_refused_while_one_device_is_over_200(self, store: Store) -> None:
        assert fill(store, 300, each=300) == 201
        assert store.run(verbs.Overload()).overloaded
        assert refusal(store, 2) == "device_full"
        serve(store)
        assert not store.run(verbs.Overload()).overloaded
        assert refusal(store, 2) == ""

    def test_expiry_ends_it_as_well(self, store: Store) -> None:
        fill(store, 201, each=201)
        store.clock.advance(3_600_001)
        assert len(store.run(verbs.Purge(1_000))) == 201
        assert not store.run(verbs.Overload()).overloaded


class TestExpiry:
    @pytest.mark.parametrize(("aged_ms", "alive"), [(3_600_000, True), (3_600_001, False)])
    def test_a_task_is_expired_when_it_is_older_than_an_hour(
        self, store: Store, aged_ms: int, alive: bool
    ) -> None:
        (task_id,) = store.enqueue(1)
        store.clock.advance(aged_ms)
        turn = claim(store)
        got = store.run(verbs.Pop(turn.mac, LANE, turn.token))
        assert [leased.task_id for leased in got.leased] == [task_id][: int(alive)]
        assert got.expired == (() if alive else (task_id,))

    def test_purge_keeps_a_task_that_is_an_hour_old(self, store: Store) -> None:
        store.enqueue(1)
        store.clock.advance(1)
        store.enqueue(1)
        store.clock.advance(3_600_000)
        assert len(store.run(verbs.Purge())) == 1
        assert device(store, 1).waited_ms == 3_600_000

    def test_pop_passes_over_what_is_expired(self, store: Store) -> None:
        for ttl_ms in (10_000, 1_000, 1_000):
            store.enqueue(1, ttl_ms=ttl_ms)
        store.clock.advance(5_000)
        turn = claim(store)
        got = store.run(verbs.Pop(turn.mac, LANE, turn.token))
        assert (len(got.leased), len(got.expired)) == (1, 2)


class TestTurn:
    def test_the_newest_task_is_popped_first(self, store: Store) -> None:
        ids = store.enqueue(1, 3)
        turn = claim(store)
        assert [pop(store, turn).task_id for _ in range(3)] == ids[::-1]

    def test_the_lock_is_taken_for_900_s_and_holds_the_token(self, store: Store) -> None:
        store.enqueue(1)
        turn = claim(store)
        lock = store.keys.device("ACTIVE", turn.mac, LANE)
        assert lock == f"sensitive:mac:active:{turn.mac}"
        assert store.redis.get(lock) == turn.token
        assert 890_000 < store.redis.pttl(lock) <= 900_000
        release(store, turn)
        assert not store.redis.exists(lock)

    def test_one_holder_at_a_time(self, store: Store) -> None:
        store.enqueue(1, 2)
        claim(store)
        assert store.run(verbs.ClaimDevice(LANE)) is None

    def test_a_dead_holders_device_is_free_after_8_s_and_its_token_is_worth_nothing(
        self, store: Store
    ) -> None:
        store.enqueue(1, 2)
        old = claim(store)
        store.clock.advance(7_999)
        assert store.run(verbs.Sweep()).turns == 0
        store.clock.advance(1)
        assert store.run(verbs.Sweep()).turns == 1
        new = claim(store)
        for verb in (verbs.Renew, verbs.Pop, verbs.Release):
            store.refuses(TurnLost, verb(old.mac, LANE, old.token))
        pop(store, new)

    def test_the_excluded_device_goes_only_if_no_other_can(self, store: Store) -> None:
        store.enqueue(1, 2)
        store.clock.advance(1)
        store.enqueue(2)
        assert [serve(store, exclude=1).mac for _ in range(2)] == [mac(2), mac(1)]


class TestLease:
    def test_a_task_that_nobody_starts_comes_back_after_20_s_then_40(self, store: Store) -> None:
        (task_id,) = store.enqueue(1)
        for seconds in (20, 40, 80):
            serve(store)
            store.clock.advance(seconds * 1_000 - 1)
            assert store.run(verbs.Sweep()).lost == ()
            store.clock.advance(1)
            assert len(store.run(verbs.Sweep()).lost) == 1
            assert store.state(task_id) is TaskState.PENDING

    @pytest.mark.parametrize(("ttl_ms", "state"), [(20_000, "pending"), (19_999, "expired")])
    def test_it_comes_back_unless_its_time_is_over(
        self, store: Store, ttl_ms: int, state: str
    ) -> None:
        (task_id,) = store.enqueue(1, ttl_ms=ttl_ms)
        serve(store)
        store.clock.advance(20_000)
        store.run(verbs.Sweep())
        assert store.state(task_id) == state
