"""What holds from one moment of a store to the next, and between it, its answers and the oracle.

The rule: one check for each invariant of the list that the design keeps, under its number; those
that one moment alone shows are in `support/invariants.py`. Where a promise speaks of time or of
processes, it is put for the virtual clock, and its sentence says how.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlane import verbs
from fairlane.mac import canonical
from fairlane.model import Claimed
from model.book import ENDED, Book
from support.dump import Seen

GIVEN_UP: Final = ("boom", "defer_limit", "worker_lost", "corrupt")
#: Verbs that wake the dispatcher when they make work possible.
WAKING: Final = (verbs.Enqueue, verbs.EnqueueMany, verbs.Finish, verbs.Fail, verbs.Defer,
                 verbs.Cancel, verbs.Release, verbs.Heartbeat, verbs.Configure)  # fmt: skip


@dataclass
class Step:
    """What happened last: the verb, its answer, and whether it must have changed nothing."""

    verb: verbs.Verb[Any] | None = None
    reply: Any = None
    changed_nothing: bool = False
    refused: bool = False


def i01_the_store_has_what_the_oracle_has(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I01: the accepted tasks are there, each in its state, and no other; counts of ends agree."""
    assert {task: record["state"] for task, record in now.tasks.items()} == {
        task: entry.state for task, entry in book.entries.items()
    }
    assert now.dead == book.dead
    totals = now.hash(now.keys.name("TOTALS"))
    assert {name: int(count) for name, count in totals.items() if int(count)} == {
        name: count for name, count in book.totals.items() if count
    }


def i02_final_states_never_change(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I02: the record of a task that ended stays as it is, but for a redrive or a drop."""
    for task, record in before.tasks.items():
        if record["state"] in ENDED and not isinstance(step.verb, verbs.Redrive):
            assert now.tasks.get(task, record) == record, task
            assert task in now.tasks or record["state"] == "dead", task


def i04_the_reason_is_named(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I04: turns, backoffs and settings are those of the oracle: what stops a device is true."""
    turns = {f"{lane}|{mac}": turn.deadline for (mac, lane), turn in book.turns.items()}
    assert now.scores("TURNS") == turns
    for (mac, lane), turn in book.turns.items():
        assert now.get(now.keys.device("ACTIVE", mac, lane), "") == turn.token
    for lane in now.settings.lanes:
        own = {mac: until for (mac, name), until in book.backoffs.items() if name == lane}
        assert now.scores("BACKOFF", lane) == own, lane
    for mac, limits in book.limits.items():
        meta = now.meta(mac)
        told = (float(meta.get("weight", 1)), meta.get("paused") == "1", meta.get("site", ""))
        assert told == (limits.weight, limits.paused, limits.site), mac
        counts = tuple(float(meta.get(name, 0)) for name in ("min_running", "max_running", "rate"))
        assert counts == (limits.min_running, limits.max_running, limits.rate), mac
        assert now.site(mac) == book.site(mac), mac


def i08_queues_keep_the_order_of_acceptance(
    before: Seen, now: Seen, book: Book, step: Step
) -> None:
    """I08: a queue is as the oracle's; what never came back is first leased in order (`fifo`)."""
    assert now.queues == {place: queue for place, queue in book.queues.items() if queue}
    if now.settings.order == "fifo":
        for place, numbers in book.firsts.items():
            assert numbers == sorted(numbers), place


def i09_attempts_rise_by_one(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I09: an attempt rises by one, at a lease and only there; there is one at most."""
    for task, entry in book.entries.items():
        record, was = now.tasks[task], before.tasks.get(task, {})
        attempt, old = int(record.get("attempt", 0)), int(was.get("attempt", 0))
        assert attempt == entry.attempt, task
        assert attempt in (old, old + 1), task
        assert attempt == old or record["state"] == "leased", task


def i10_a_stale_call_changes_nothing(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I10: stale tokens, attempts, unknown ids and repeated calls change nothing at all."""
    if step.changed_nothing:
        differ = {name for name in {**before.digest, **now.digest}
                  if before.digest.get(name) != now.digest.get(name)}  # fmt: skip
        assert not differ, {name: (before.digest.get(name), now.digest.get(name))
                            for name in differ}  # fmt: skip


def i11_leases_end_when_they_must(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I11: a lease ends when the oracle says, and none that is over outlives a sweep."""
    for lane in now.settings.lanes:
        assert now.leases(lane) == {
            entry.task_id: entry.lease_until
            for entry in book.these("leased", "running")
            if entry.lane == lane
        }
    over = [until for lane in now.settings.lanes for until in before.leases(lane).values()
            if until <= now.now_ms]  # fmt: skip
    if isinstance(step.verb, verbs.Sweep) and step.verb.limit >= len(over):
        for lane in now.settings.lanes:
            assert all(until > now.now_ms for until in now.leases(lane).values()), lane


def i12_backoffs_follow_the_formula(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I12: delay = min(base × 2^(n-1), max), up to the jitter more; nothing goes before it."""
    settings = now.settings
    if isinstance(step.verb, verbs.Defer | verbs.Fail) and step.reply.due_ms:
        entry = book.entries[step.verb.task_id]
        is_defer = isinstance(step.verb, verbs.Defer)
        base = settings.defer_backoff_base_ms if is_defer else settings.retry_backoff_base_ms
        n = entry.defers if is_defer else entry.failures
        least = min(base * 2 ** (n - 1), settings.defer_backoff_max_ms)
        most = least * (100 + settings.defer_jitter_percent) / 100
        if not step.changed_nothing:
            assert least <= step.reply.due_ms - now.now_ms <= most
    assert now.delayed == {entry.task_id: entry.due_at for entry in book.these("delayed")}
    for task, due in before.delayed.items():
        if task not in now.delayed and now.tasks[task]["state"] not in ("cancelled", "expired"):
            assert due <= now.now_ms, task


def i13_failures_and_defers_are_counted(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I13: failed or lost starts count, defers apart from them, an unstarted lease as neither."""
    for task, entry in book.entries.items():
        record = now.tasks[task]
        told = [int(record.get(name, 0)) for name in ("failures", "defers")]
        assert told == [entry.failures, entry.defers], task
        if entry.state in ("pending", "leased"):
            assert int(record.get("misses", 0)) == entry.misses, task


def i14_no_capacity_kills_no_task(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I14: a task dies by a failure, a defer or a lost worker, never because none was there."""
    for task in set(now.dead) - set(before.dead):
        assert now.tasks[task]["cause"] in GIVEN_UP, task
        assert isinstance(step.verb, verbs.Fail | verbs.Defer | verbs.Sweep | verbs.Quarantine)


def i15_expired_only_after_its_ttl(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I15: a task has the age and the expiry that it was given, and ends past it, recorded."""
    for task, entry in book.entries.items():
        record = now.tasks[task]
        times = int(record["created_at"]), int(record["expires_at"])
        assert times == (entry.created_at, entry.expires_at), task
        if record["state"] in ENDED and before.tasks.get(task, {}).get("state") not in ENDED:
            assert int(record["ended_at"]) == now.now_ms, task


def i16_the_payload_is_as_it_came(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I16: the payload's bytes are those accepted, whatever happens to the task."""
    for task, entry in book.entries.items():
        assert now.tasks[task]["payload"] == entry.payload, task


def i17_one_device_whatever_its_spelling(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I17: a MAC's canonical form is its own canonical form, and the device's only name."""
    assert {canonical(mac) for mac in now.macs} == now.macs
    assert {entry.mac for entry in book.entries.values()} <= now.macs


def i18_a_key_is_one_task(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I18: an idempotency key stands for one task, for its time, whoever sends it again."""
    receipts = now.hash(now.keys.name("RECEIPTS"))
    told = {key: (int(line.split()[0]), line.split()[3]) for key, line in receipts.items()}
    assert told == {key: (kept.until, kept.task_id) for key, kept in book.gate.receipts.items()}


def i19_refused_stores_nothing(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I19: refused: nothing but the count of refusals and the marks of limits; else it is there."""
    if step.refused:
        assert now.tasks == before.tasks
        assert now.queues == before.queues
        for name in ("GLOBAL_PENDING", "EVENTS", "DEADLINES", "MACS", "OVERLOADED"):
            assert now.get(now.keys.name(name), None) == before.get(now.keys.name(name), None)


def i20_limits_hold_exactly(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I20: no lease takes a device past max_running, nor past the tokens that its rate gave."""
    for mac, limits in book.limits.items():
        running, was = (int(seen.meta(mac).get("leased", 0)) for seen in (now, before))
        assert not (running > was and 0 < limits.max_running < running), mac
        if limits.rate and limits.leased_at:
            burst, times = max(1.0, limits.rate), limits.leased_at
            for at, since in enumerate(times):
                tokens = burst + (times[-1] - since) * limits.rate / 1000
                assert len(times) - at <= tokens + 1e-3, f"{mac} is over {limits.rate} a second"


def i22_nobody_gains_credit(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I22: who comes into a schedule starts at v or later; no refund goes behind v."""
    if not _is_fair(before, now):
        return
    for lane in now.settings.lanes:
        for mac, score in now.scheduled(lane).items():
            site, old = now.site(mac), tag_of(before, mac, lane)
            v = min(_v(before, lane, site), _v(now, lane, site))
            if site == before.site(mac):
                assert -score >= (v if old is None else min(v, old)), mac


def i22_a_turn_is_paid_for(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I22: a device that was leased tasks stands further back by what they cost / its weight."""
    if not _is_fair(before, now) or not isinstance(step.reply, Claimed):
        return
    charged: Counter[str] = Counter()
    for task in step.reply.leased:
        if "paid" not in before.tasks[task.task_id]:
            charged[task.mac] += int(now.tasks[task.task_id]["paid"])
    for mac, cost in charged.items():
        lane = _lane(step)
        old, new = tag_of(before, mac, lane), tag_of(now, mac, lane)
        assert new is not None, mac
        assert new >= (old or 0) + cost // float(now.meta(mac).get("weight", 1)) - 1, mac


def i22_the_turn_is_that_of_who_is_owed_most(
    before: Seen, now: Seen, book: Book, step: Step
) -> None:
    """I22: the first turn is that of the first device of the first site, but for the exceptions.

    These are who is below its floor, one turn in four of the longest waiting, and `exclude_mac`.
    Only where nothing fell due in the same step.
    """
    if not isinstance(step.verb, verbs.Claim) or not step.reply.leased or step.verb.exclude_mac:
        return
    lane, mac = step.verb.lane, step.reply.leased[0].mac
    due = [*before.delayed.values(), *before.scores("BACKOFF", lane).values()]
    due += before.scores("THROTTLED", lane).values()
    if any(time <= now.now_ms for time in due) or step.reply.expired:
        return
    floor, waits = before.scores("FLOOR", lane), before.scores("WAITING", lane)
    if floor:
        assert mac in floor
    elif now.settings.policy == "fair":
        sites = before.scores("SITES", lane)
        site = max(sites, key=lambda name: sites[name])
        order = before.get(before.order("SCHEDULE", lane, site), {})
        guarded = int(before.virtual(lane).get("turns", 0)) % 4 == 3
        longest = min(waits, key=lambda name: (waits[name], name))
        starves = waits[longest] <= now.now_ms - now.settings.starvation_after_ms
        assert mac == max(order, key=lambda name: order[name]) or (
            guarded and starves and mac == longest
        )
    elif not any(score > 0 for score in before.scheduled(lane).values()):
        young = now.now_ms - now.settings.aging_max_wait_ms
        scores = before.scheduled(lane)
        if all(-score // 1024 > young for score in scores.values()):
            assert mac == max(scores, key=lambda name: (scores[name], name))


def i23_a_free_slot_and_an_eligible_task(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I23: a free place and a task that can go: the next claim leases it, and it is called for.

    For the virtual clock: a claim leaves no device that can go while it has room; and a verb that
    makes work possible rings the doorbell, at which a dispatcher claims.
    """
    if isinstance(step.verb, verbs.Claim) and not step.changed_nothing:
        lane = step.verb.lane
        room = step.verb.want or credits_of(before, lane)
        assert len(step.reply.leased) == room or not now.scheduled(lane), lane
    elif isinstance(step.verb, WAKING):
        for lane in now.settings.lanes:
            could = bool(before.scheduled(lane)) and credits_of(before, lane) > 0
            can = bool(now.scheduled(lane)) and credits_of(now, lane) > 0
            assert could or not can or now.get(now.keys.doorbell, []), f"{lane}: nobody rang"


def i24_a_call_moves_no_more_than_it_may(before: Seen, now: Seen, book: Book, step: Step) -> None:
    """I24: a claim leases `want` at most, a sweep or purge ends `limit` of each kind and lane."""
    match step.verb:
        case verbs.Claim(want=want) if want:
            assert len(step.reply.leased) <= want
        case verbs.Pop():
            assert len(step.reply.leased) <= 1
        case verbs.Purge(limit=limit):
            assert len(step.reply) <= limit
        case verbs.Sweep(limit=limit):
            swept = step.reply
            moved = len(swept.lost) + len(swept.workers) + swept.receipts
            assert moved + swept.backoffs + swept.delays + swept.turns <= limit


def credits_of(seen: Seen, lane: str) -> int:
    """Return a lane's free places: slots and headroom less what is leased, in its pool too."""
    capacity = seen.hash(seen.keys.name("CAPACITY"))
    slots: Counter[str] = Counter()
    pools: list[set[str]] = [{name} for name in seen.settings.lanes]
    offers: list[tuple[set[str], int]] = []
    for worker in seen.scores("WORKERS"):
        row = seen.hash(seen.keys.name("WORKER") + worker)
        lanes = {*filter(None, row.get("lanes", "").split(","))}
        offers.append((lanes, int(row["slots"])))
        slots.update(dict.fromkeys(lanes, int(row["slots"])))
        joined = {name for pool in pools if pool & lanes for name in pool}
        pools = [pool for pool in pools if not pool & lanes] + ([joined] if joined else [])
    if not slots[lane]:
        return 0
    (pool,) = (pool for pool in pools if lane in pool)
    free = sum(count for lanes, count in offers if lanes & pool)
    free -= sum(len(seen.leases(name)) for name in pool)
    free = max(0, min(free, slots[lane] - len(seen.leases(lane))) + _headroom(seen, lane, slots))
    assert int(capacity.get(f"slots:{lane}", 0)) == slots[lane]
    return free


def _headroom(seen: Seen, lane: str, slots: Mapping[str, int]) -> int:
    service = seen.hash(seen.keys.name("CAPACITY")).get(f"service_ms:{lane}")
    if service is None:
        return 1
    most = slots[lane] * seen.settings.target_delay_ms / max(1.0, float(service))
    return min(2 * slots[lane], int(most))


def _is_fair(before: Seen, now: Seen) -> bool:
    return before.settings.policy == now.settings.policy == "fair"


def _lane(step: Step) -> str:
    lane: str = step.verb.lane  # type: ignore[union-attr]
    return lane


def _v(seen: Seen, lane: str, site: str) -> int:
    return int(seen.virtual(lane, site).get("v", 0))


def tag_of(seen: Seen, mac: str, lane: str) -> int | None:
    """Return the tag of a device in a lane, wherever it stands."""
    scores = seen.scheduled(lane)
    if mac in scores:
        return -int(scores[mac])
    held = seen.meta(mac).get(seen.field(lane, "tag"))
    remembered = seen.get(seen.order("FINISH", lane, seen.site(mac)), {}).get(mac)
    found = held if held is not None else remembered
    return None if found is None else int(float(found))


PROMISES: Final[tuple[Callable[[Seen, Seen, Book, Step], None], ...]] = (
    i01_the_store_has_what_the_oracle_has,
    i02_final_states_never_change,
    i04_the_reason_is_named,
    i08_queues_keep_the_order_of_acceptance,
    i09_attempts_rise_by_one,
    i10_a_stale_call_changes_nothing,
    i11_leases_end_when_they_must,
    i12_backoffs_follow_the_formula,
    i13_failures_and_defers_are_counted,
    i14_no_capacity_kills_no_task,
    i15_expired_only_after_its_ttl,
    i16_the_payload_is_as_it_came,
    i17_one_device_whatever_its_spelling,
    i18_a_key_is_one_task,
    i19_refused_stores_nothing,
    i20_limits_hold_exactly,
    i22_nobody_gains_credit,
    i22_a_turn_is_paid_for,
    i22_the_turn_is_that_of_who_is_owed_most,
    i23_a_free_slot_and_an_eligible_task,
    i24_a_call_moves_no_more_than_it_may,
)
