"""What is true of every store at every moment, recomputed from the raw keys.

The rule: one check for each invariant of the list that the design keeps (I01 … Q28), under its
number; those that compare two moments, or an answer, are in `model/promises.py`. A check trusts no
counter and no script: it counts anew from the records and lists of a dump.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Final

from fairlane.keys import Keys
from fairlane.mac import canonical
from fairlane.model import TERMINAL, TaskState
from fairlane.settings import Settings
from support.dump import DEFAULT, LEASED, WAITING, Seen

SATURATED = 2**52
LONGEST_LEASE_MS: Final = 3_600_000
_CONFIGURED = {
    *("weight", "paused", "min_running", "max_running", "rate", "site"),
    *("configured", "tokens", "tokens_at"),
}


def check_invariants(redis: Any, keys: Keys, settings: Settings, now_ms: int) -> None:
    """Assert all that holds of a healthy store."""
    check(Seen(redis, keys, settings, now_ms))


def check(seen: Seen) -> None:
    """Assert all that holds of a healthy store, as it was seen."""
    for invariant in CHECKS:
        invariant(seen)


def i01_each_task_is_in_exactly_one_place(seen: Seen) -> None:
    """I01: each accepted task is where its state says, there once, and nowhere else."""
    queued = Counter(task for queue in seen.queues.values() for task in queue)
    leases = {lane: seen.leases(lane) for lane in seen.settings.lanes}
    leased = Counter(task for tasks in leases.values() for task in tasks)
    for task, record in seen.tasks.items():
        state, mac, lane = TaskState(record["state"]), record["mac"], record["lane"]
        where = f"task {task} is {state}"
        assert queued[task] == (state is TaskState.PENDING), where
        assert (task in seen.delayed) == (state is TaskState.DELAYED), where
        assert leased[task] == (state in LEASED), where
        assert seen.dead.count(task) == (state is TaskState.DEAD), where
        if state is TaskState.PENDING:
            assert task in seen.queues[mac, lane], where
        if state in LEASED:
            assert task in leases[lane], where
        assert (seen.lives_ms(task) > 0) == (state in TERMINAL - {TaskState.DEAD}), where
    assert {*queued, *seen.delayed, *leased, *seen.dead} <= set(seen.tasks)


def i01_whatever_was_accepted_is_inside_or_ended(seen: Seen) -> None:
    """I01: accepted tasks are in the system or ended, and each of them is counted once."""
    totals = {name: int(value) for name, value in seen.hash(seen.keys.name("TOTALS")).items()}
    states = Counter(record["state"] for record in seen.tasks.values())
    inside = sum(states[state] for state in TaskState if state not in TERMINAL)
    ended = sum(totals.get(state, 0) for state in TERMINAL)
    assert totals.get("accepted", 0) + totals.get("redriven", 0) == inside + ended
    for state in TERMINAL:
        assert states[state] <= totals.get(state, 0), state


def i03_the_schedule_is_who_can_go(seen: Seen) -> None:
    """I03: the schedule, and `waiting`, hold the devices that can go and no others."""
    for lane in seen.settings.lanes:
        can_go = {mac for mac, name in seen.queues if name == lane and not reasons(seen, mac, lane)}
        assert set(seen.scheduled(lane)) == can_go, lane
        assert set(seen.scores("WAITING", lane)) == can_go, lane
        floor = {
            mac
            for mac in can_go
            if int(seen.meta(mac).get("leased", 0)) < int(seen.meta(mac).get("min_running", 0))
        }
        assert set(seen.scores("FLOOR", lane)) == floor, lane
        if seen.settings.policy == "fair":
            able = {site for site in seen.sites if seen.get(seen.order("SCHEDULE", lane, site), {})}
            assert set(seen.scores("SITES", lane)) == able, lane


def i04_whoever_cannot_go_has_a_reason(seen: Seen) -> None:
    """I04: a device with a queue is in the schedule, or something that ends names it."""
    scheduled = {(mac, lane) for lane in seen.settings.lanes for mac in seen.scheduled(lane)}
    for mac, lane in seen.queues:
        assert ((mac, lane) in scheduled) == (not reasons(seen, mac, lane)), (mac, lane)
    for turn in seen.scores("TURNS"):
        lane, mac = turn.split("|")
        assert seen.get(seen.keys.device("ACTIVE", mac, lane), ""), f"{turn} has no token"


def reasons(seen: Seen, mac: str, lane: str) -> set[str]:
    """Return all that keeps a device with a queue out of the schedule."""
    meta, found = seen.meta(mac), set()
    if meta.get("paused") == "1":
        found.add("paused")
    if mac in seen.scores("BACKOFF", lane):
        found.add("backoff")
    if f"{lane}|{mac}" in seen.scores("TURNS"):
        found.add("turn")
    most, rate = int(meta.get("max_running", 0)), float(meta.get("rate", 0))
    if most and int(meta.get("leased", 0)) >= most:
        found.add("max_running")
    if rate and "tokens" in meta:
        gathered = (seen.now_ms - int(meta["tokens_at"])) * rate / 1000
        tokens = min(max(1, rate), float(meta["tokens"]) + gathered)
        # One that has a token by now is let in by the next sweep or claim.
        if tokens < 1 - 1e-6 or mac in seen.scores("THROTTLED", lane):
            found.add("rate")
    return found


def i05_every_counter_equals_the_lists(seen: Seen) -> None:
    """I05: global = Σ devices = Σ queues + delayed; so per lane, and so for what is leased."""
    waiting = seen.waiting()
    by_mac: Counter[str] = Counter()
    by_lane: Counter[str] = Counter()
    for (mac, lane), count in waiting.items():
        by_mac[mac] += count
        by_lane[lane] += count
    assert int(seen.get(seen.keys.name("GLOBAL_PENDING"), 0)) == by_mac.total()
    assert set(seen.scores("MACS")) == set(by_mac)
    leased = Counter(
        (record["mac"], record["lane"])
        for record in seen.tasks.values()
        if TaskState(record["state"]) in LEASED
    )
    for mac in seen.macs:
        meta = seen.meta(mac)
        assert int(meta.get("pending_count", 0)) == by_mac[mac], mac
        total = sum(leased[mac, lane] for lane in seen.settings.lanes)
        assert int(meta.get("leased", 0)) == total, mac
        for lane in seen.settings.lanes:
            assert seen.number(mac, lane, "pending_count") == waiting[mac, lane], (mac, lane)
            assert seen.number(mac, lane, "leased") == leased[mac, lane], (mac, lane)
    for lane in seen.settings.lanes:
        assert int(seen.virtual(lane).get("pending", 0)) == by_lane[lane], lane
        for site in seen.sites:
            count = sum(leased[mac, lane] for mac in seen.macs if seen.site(mac) == site)
            assert int(seen.virtual(lane, site).get("leased", 0)) == count, (lane, site)


def i05_sites_are_counted(seen: Seen) -> None:
    """I05: a site's pending tasks, and those of all sites but `default`, are counted."""
    pending: Counter[str] = Counter()
    for (mac, _), count in seen.waiting().items():
        pending[seen.site(mac)] += count
    del pending[DEFAULT]
    counted = seen.hash(seen.keys.name("SITES_PENDING"))
    assert {site: int(count) for site, count in counted.items() if ":" not in site} == {
        site: count for site, count in pending.items() if count
    }
    assert int(counted.get(":all", 0)) == pending.total()


def i05_ages_are_those_of_the_oldest(seen: Seen) -> None:
    """I05: a device's oldest task, per lane and in all, is that of its queues."""
    for mac in seen.macs:
        oldest = []
        for lane in seen.settings.lanes:
            queue = seen.queues.get((mac, lane), [])
            ages = [int(seen.tasks[task]["created_at"]) for task in queue]
            stored = seen.number(mac, lane, "oldest_created_at")
            # A deferred task may stand behind younger ones, where nobody looks for it.
            deferred = any(int(seen.tasks[task].get("defers", 0)) for task in queue)
            assert stored in ages if deferred else stored == min(ages, default=0), (mac, lane)
            oldest += [stored] if queue else []
        stored = int(seen.meta(mac).get("oldest_created_at") or 0)
        assert stored == min(oldest, default=0), mac


def i06_overloaded_are_those_over_the_limit(seen: Seen) -> None:
    """I06: a device is marked as overloaded if and only if its live count is over the limit."""
    by_mac: Counter[str] = Counter()
    for (mac, _), count in seen.waiting().items():
        by_mac[mac] += count
    over = {mac for mac, count in by_mac.items() if count > seen.settings.max_per_mac_pending}
    assert seen.get(seen.keys.name("OVERLOADED"), set()) == over


def i11_every_lease_has_a_deadline(seen: Seen) -> None:
    """I11: a lease ends, at the latest an hour from now."""
    longest = max(LONGEST_LEASE_MS, seen.settings.lease_ms)
    for lane in seen.settings.lanes:
        for task, deadline in seen.leases(lane).items():
            assert deadline <= seen.now_ms + longest, task


def i12_what_is_put_off_has_its_due_time(seen: Seen) -> None:
    """I12: a delayed task waits for its record's due time, a backoff for that of its device."""
    for task, due in seen.delayed.items():
        assert int(seen.tasks[task]["due_at"]) == due, task
    for lane in seen.settings.lanes:
        backoff = seen.scores("BACKOFF", lane)
        for mac in seen.macs | set(backoff):
            assert seen.number(mac, lane, "unschedulable_until") == backoff.get(mac, 0), mac


def i13_whoever_is_alive_has_attempts_left(seen: Seen) -> None:
    """I13: past max_attempts or max_defers, or corrupt, a task is dead, with cause and payload."""
    settings = seen.settings
    for task, record in seen.tasks.items():
        failures, defers = int(record.get("failures", 0)), int(record.get("defers", 0))
        if record["state"] not in TERMINAL:
            assert failures < settings.max_attempts, task
            assert defers <= settings.max_defers, task
        elif record["state"] == TaskState.DEAD:
            spent = failures >= settings.max_attempts or defers > settings.max_defers
            # What cannot be read is not run, however many attempts it had left.
            assert spent or record["cause"] == "corrupt", task
            assert {"cause", "error", "dead_at"} <= set(record), task


def i15_expiry_is_after_the_ttl(seen: Seen) -> None:
    """I15: what waits has the expiry of its record; what expired did so after it, and is kept."""
    deadlines = seen.scores("DEADLINES")
    waiting = {
        task: int(record["expires_at"])
        for task, record in seen.tasks.items()
        if record["state"] in WAITING
    }
    assert deadlines == waiting
    for task, record in seen.tasks.items():
        if record["state"] == TaskState.EXPIRED:
            assert int(record["ended_at"]) > int(record["expires_at"]), task


def i17_every_mac_is_canonical(seen: Seen) -> None:
    """I17: a device stands in the store under one spelling, whatever was sent."""
    for mac in seen.macs:
        assert canonical(mac) == mac


def i21_lists_are_bounded(seen: Seen) -> None:
    """I21: dead letters stay within their cap, and so does whatever else could grow."""
    settings = seen.settings
    receipts = seen.hash(seen.keys.name("RECEIPTS"))
    ends = {key: float(receipt.split()[0]) for key, receipt in receipts.items()}
    assert ends == seen.scores("RECEIPTS_DUE"), "every receipt has its end"
    assert len(receipts) <= settings.idempotency_cap
    assert len(seen.dead) <= settings.dead_letter_cap
    assert len(seen.get(seen.keys.doorbell, [])) <= 1
    assert len(seen.get(seen.keys.name("ABNORMAL"), [])) <= settings.abnormal_cap


def i22_the_order_is_by_what_is_true_now(seen: Seen) -> None:
    """I22 (S03, S04): what orders devices is what their tasks and turns give now."""
    for lane in seen.settings.lanes:
        waits = seen.scores("WAITING", lane)
        for mac, score in seen.scheduled(lane).items():
            oldest = seen.number(mac, lane, "oldest_created_at")
            turn, served = seen.number(mac, lane, "turn"), seen.number(mac, lane, "served_at")
            assert waits[mac] == max(oldest, served), f"{mac} waits since"
            if seen.settings.policy == "fair":
                assert score <= 0, "a start tag is never negative"
                assert score.is_integer(), f"tag {score} of {mac}"
            elif score <= 0:
                assert -score // 1024 == oldest, f"{mac} ranks by an age that is not its own"
            else:
                assert seen.now_ms - oldest >= seen.settings.aging_max_wait_ms, mac
                never = (2 * SATURATED - score) // 1024 == oldest
                assert (score == SATURATED - turn) if turn else never, mac


def i22_a_tag_stands_in_one_place(seen: Seen) -> None:
    """I22: a tag is in the schedule, beside leases, or remembered while it is ahead of v."""
    if seen.settings.policy != "fair":
        return
    for lane in seen.settings.lanes:
        scheduled = seen.scheduled(lane)
        for site in seen.sites:
            remembered = seen.get(seen.order("FINISH", lane, site), {})
            # A device that drained and joined another site is remembered where it was.
            for mac in (mac for mac in remembered if seen.site(mac) == site):
                assert mac not in scheduled, lane
                assert seen.field(lane, "tag") not in seen.meta(mac), mac
            weights = [float(seen.meta(mac).get("weight", 1)) for mac in scheduled
                       if seen.site(mac) == site]  # fmt: skip
            extra = int(seen.virtual(lane, site).get("extra", 0))
            assert extra == sum(round((weight - 1) * 1_000_000) for weight in weights), lane
        for site in seen.sites:
            places = [site in seen.scores("SITES", lane), site in seen.scores("SITES_FINISH", lane)]
            places.append("tag" in seen.virtual(lane, site))
            assert sum(places) <= 1, f"{lane}: site {site}"
        for mac in seen.macs:
            held = seen.field(lane, "tag") in seen.meta(mac)
            has_leases = seen.number(mac, lane, "leased") > 0
            due = has_leases and mac not in scheduled
            # Leases of another policy charged nothing, or what they charged was forgotten with it.
            assert held == due or (due and seen.was_migrated), (mac, lane)


def i25_slots_are_those_reported(seen: Seen) -> None:
    """I25: the slots that a lane shows are those that its workers reported."""
    slots: defaultdict[str, int] = defaultdict(int)
    for worker in seen.scores("WORKERS"):
        row = seen.hash(seen.keys.name("WORKER") + worker)
        for lane in filter(None, row.get("lanes", "").split(",")):
            slots[lane] += int(row["slots"])
    capacity = seen.hash(seen.keys.name("CAPACITY"))
    for lane in seen.settings.lanes:
        assert int(capacity.get(f"slots:{lane}", 0)) == slots[lane], lane


def q27_nothing_is_left_of_what_drained(seen: Seen) -> None:
    """Q27: a drained device keeps its settings only, a site without tasks has no key."""
    waiting = Counter(mac for mac, _ in seen.waiting())
    for mac in seen.macs:
        meta = seen.meta(mac)
        if not waiting[mac] and not int(meta.get("leased", 0)):
            left = {name for name in meta if not name.endswith("unschedulable_until")}
            assert left <= _CONFIGURED, f"a drained device keeps its settings only: {left}"
    for lane in seen.settings.lanes:
        lasting = [seen.keys.lane(lua, lane) + "@" for lua in ("VIRTUAL", "FINISH")]
        for name in (name for prefix in lasting for name in seen.held(prefix)):
            site = name.partition("@")[2]
            leased = int(seen.virtual(lane, site).get("leased", 0)) > 0
            has_tasks = bool(seen.get(seen.order("SCHEDULE", lane, site), {}))
            assert has_tasks or leased, f"{name} is left"


CHECKS: Final[tuple[Callable[[Seen], None], ...]] = (
    i01_each_task_is_in_exactly_one_place,
    i01_whatever_was_accepted_is_inside_or_ended,
    i03_the_schedule_is_who_can_go,
    i04_whoever_cannot_go_has_a_reason,
    i05_every_counter_equals_the_lists,
    i05_sites_are_counted,
    i05_ages_are_those_of_the_oldest,
    i06_overloaded_are_those_over_the_limit,
    i11_every_lease_has_a_deadline,
    i12_what_is_put_off_has_its_due_time,
    i13_whoever_is_alive_has_attempts_left,
    i15_expiry_is_after_the_ttl,
    i17_every_mac_is_canonical,
    i21_lists_are_bounded,
    i22_the_order_is_by_what_is_true_now,
    i22_a_tag_stands_in_one_place,
    i25_slots_are_those_reported,
    q27_nothing_is_left_of_what_drained,
)
