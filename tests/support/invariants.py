"""What is true of every store at every moment, recomputed from the raw keys.

The rule: nothing here trusts a counter or a script; each is counted anew from the records and lists
and compared. The numbers (I01 …) are those of the list of invariants that the design keeps.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, TypeAlias

from fairlane.keys import ABNORMAL, TABLE, Keys
from fairlane.model import TERMINAL, TaskState
from fairlane.settings import Settings

DeviceLane: TypeAlias = tuple[str, str]  # mac, lane
SATURATED = 2**52
_WAITING = (TaskState.PENDING, TaskState.DELAYED)
_LEASED = (TaskState.LEASED, TaskState.RUNNING)
_CONFIGURED = {
    *("weight", "paused", "min_running", "max_running", "rate", "site"),
    *("configured", "tokens", "tokens_at"),
}
DEFAULT = "default"


def check_invariants(redis: Any, keys: Keys, settings: Settings, now_ms: int) -> None:
    """Assert all that holds of a healthy store. `redis` decodes its replies."""
    seen = _See(redis, keys, settings, now_ms)
    _check_places(seen)
    _check_counters(seen)
    _check_leases(seen)
    _check_sites(seen)
    _check_membership(seen)
    _check_order(seen)
    _check_tags(seen)
    _check_totals(seen)
    _check_capacity(seen)
    _check_bounds(seen)


class _See:
    """The raw store, read once; no key may be there that the table does not name."""

    def __init__(self, redis: Any, keys: Keys, settings: Settings, now_ms: int) -> None:
        self.keys, self.settings, self.now_ms = keys, settings, now_ms
        self._held = _read(redis, keys, settings)
        prefix = keys.name("TASK")
        self.tasks: dict[str, dict[str, str]] = {
            name.removeprefix(prefix): value
            for name, value in self._held.items()
            if name.startswith(prefix)
        }
        lives = redis.pipeline(transaction=False)
        for task in self.tasks:
            lives.pttl(keys.task(task))
        self.lives_ms: dict[str, int] = dict(zip(self.tasks, lives.execute(), strict=True))
        self.macs = {record["mac"] for record in self.tasks.values()} | {
            name.removeprefix(keys.name("META"))
            for name in self._held
            if name.startswith(keys.name("META"))
        }
        self.queues: dict[DeviceLane, list[str]] = {
            (mac, lane): queue
            for mac in self.macs
            for lane in settings.lanes
            if (queue := self.get(keys.device("QUEUE", mac, lane), []))
        }
        self.sites = {DEFAULT} | {self.site(mac) for mac in self.macs}
        self.delayed: dict[str, float] = self.scores("DELAYED")
        self.dead: list[str] = self.get(keys.name("DEAD_LETTER"), [])

    def held(self, prefix: str) -> list[str]:
        """Return the names of the keys that begin so."""
        return [name for name in self._held if name.startswith(prefix)]

    def get(self, name: str, otherwise: Any) -> Any:
        return self._held.get(name, otherwise)

    def scores(self, lua: str, lane: str | None = None) -> dict[str, float]:
        name = self.keys.name(lua) if lane is None else self.keys.lane(lua, lane)
        return dict(self.get(name, []))

    def hash(self, name: str) -> dict[str, str]:
        found: dict[str, str] = self.get(name, {})
        return found

    def site(self, mac: str) -> str:
        """Return a device's site: the configured one, else the one that came with its tasks."""
        meta = self.meta(mac)
        return meta.get("site") or meta.get("at_site") or DEFAULT

    def order(self, lua: str, lane: str, site: str) -> str:
        """Return a key of a site's order; under `aging` there is one for all devices."""
        inner = site != DEFAULT and (self.settings.policy == "fair" or lua == "VIRTUAL")
        return self.keys.lane(lua, lane) + (f"@{site}" if inner else "")

    def scheduled(self, lane: str) -> dict[str, float]:
        """Return every device that stands in one of the lane's schedules, and its score."""
        found: dict[str, float] = {}
        for site in self.sites:
            members = dict(self.get(self.order("SCHEDULE", lane, site), []))
            assert all(self.site(mac) == site for mac in members) or (
                self.settings.policy == "aging"
            )
            found |= members
        return found

    def meta(self, mac: str) -> dict[str, str]:
        return self.hash(self.keys.device("META", mac))

    def field(self, lane: str, name: str) -> str:
        return name if lane == "main" else f"{lane}.{name}"

    def waiting(self) -> Counter[DeviceLane]:
        """Count pending and delayed tasks per device and lane, from their lists."""
        counts = Counter({place: len(queue) for place, queue in self.queues.items()})
        counts.update((self.tasks[task]["mac"], self.tasks[task]["lane"]) for task in self.delayed)
        return counts


def _read(redis: Any, keys: Keys, settings: Settings) -> dict[str, Any]:
    """Return every key's value, in the type that the table gives it."""
    rows = {keys.name(row.lua): row.type.partition(",")[0] for row in (*TABLE, ABNORMAL)}
    kinds = {}
    for name in redis.keys("*"):
        plain = name.partition("@")[0]
        for lane in settings.lanes:
            plain = plain.removesuffix(f":{lane}")
        longest = max(
            (row for row in rows if row.endswith(":") and name.startswith(row)), default=""
        )
        row = rows.get(name) or rows.get(plain) or rows.get(longest)
        assert row is not None, f"no row of the table names {name}"
        kinds[name] = row.split()[0]
    pipeline = redis.pipeline(transaction=False)
    for name, kind in kinds.items():
        match kind:
            case "Hash":
                pipeline.hgetall(name)
            case "ZSet":
                pipeline.zrange(name, 0, -1, withscores=True)
            case "List":
                pipeline.lrange(name, 0, -1)
            case "Set":
                pipeline.smembers(name)
            case "Stream":
                pipeline.xlen(name)
            case _:
                pipeline.get(name)
    return dict(zip(kinds, pipeline.execute(), strict=True))


def _check_places(seen: _See) -> None:
    """I01: each task is in exactly the place that its state names; I15, I21: and for its time."""
    queued = Counter(task for queue in seen.queues.values() for task in queue)
    leases = {lane: seen.scores("INFLIGHT", lane) for lane in seen.settings.lanes}
    leased = Counter(task for tasks in leases.values() for task in tasks)
    deadlines = seen.scores("DEADLINES")
    for task, record in seen.tasks.items():
        state, mac, lane = TaskState(record["state"]), record["mac"], record["lane"]
        where = f"task {task} is {state}"
        assert queued[task] == (state is TaskState.PENDING), where
        assert (task in seen.delayed) == (state is TaskState.DELAYED), where
        assert leased[task] == (state in _LEASED), where
        assert seen.dead.count(task) == (state is TaskState.DEAD), where
        assert (task in deadlines) == (state in _WAITING), where
        if state is TaskState.PENDING:
            assert task in seen.queues[mac, lane], where
        if state in _LEASED:
            assert task in leases[lane], where
        if state in _WAITING:
            assert deadlines[task] == int(record["expires_at"]), where
        assert (seen.lives_ms[task] > 0) == (state in TERMINAL - {TaskState.DEAD}), where
    known = set(seen.tasks)
    assert set(queued) | set(seen.delayed) | set(leased) | set(seen.dead) <= known
    assert set(deadlines) <= known


def _check_counters(seen: _See) -> None:
    """I05, I06: every counter equals the lists."""
    waiting = seen.waiting()
    by_mac: Counter[str] = Counter()
    by_lane: Counter[str] = Counter()
    for (mac, lane), count in waiting.items():
        by_mac[mac] += count
        by_lane[lane] += count
    assert int(seen.get(seen.keys.name("GLOBAL_PENDING"), 0)) == by_mac.total()
    assert set(seen.scores("MACS")) == set(by_mac)
    for lane in seen.settings.lanes:
        virtual = seen.hash(seen.keys.lane("VIRTUAL", lane))
        assert int(virtual.get("pending", 0)) == by_lane[lane], lane
    limit = seen.settings.max_per_mac_pending
    over = {mac for mac, count in by_mac.items() if count > limit}
    assert seen.get(seen.keys.name("OVERLOADED"), set()) == over
    for mac in seen.macs:
        meta = seen.meta(mac)
        assert int(meta.get("pending_count", 0)) == by_mac[mac], mac
        oldest = []
        for lane in seen.settings.lanes:
            count, queue = waiting[mac, lane], seen.queues.get((mac, lane), [])
            assert int(meta.get(seen.field(lane, "pending_count"), 0)) == count, (mac, lane)
            ages = [int(seen.tasks[task]["created_at"]) for task in queue]
            stored = int(meta.get(seen.field(lane, "oldest_created_at")) or 0)
            # A deferred task may stand behind younger ones; then the ends do not tell the oldest.
            exact = ages == sorted(ages) or not ages
            assert stored == min(ages, default=0) if exact else stored in ages, (mac, lane)
            oldest += [stored] if queue else []
        assert int(meta.get("oldest_created_at") or 0) == min(oldest, default=0), mac
        if not by_mac[mac] and not int(meta.get("leased", 0)):
            left = {name for name in meta if not name.endswith("unschedulable_until")}
            assert left <= _CONFIGURED, f"a drained device keeps its settings only: {left}"


def _check_leases(seen: _See) -> None:
    """A device's, a site's count of leases is that of the leased tasks, lane by lane."""
    leased: Counter[DeviceLane] = Counter()
    for record in seen.tasks.values():
        if TaskState(record["state"]) in _LEASED:
            leased[record["mac"], record["lane"]] += 1
    for mac in seen.macs:
        meta = seen.meta(mac)
        total = sum(leased[mac, lane] for lane in seen.settings.lanes)
        assert int(meta.get("leased", 0)) == total, mac
        for lane in seen.settings.lanes:
            assert int(meta.get(seen.field(lane, "leased"), 0)) == leased[mac, lane], (mac, lane)
    for lane in seen.settings.lanes:
        for site in seen.sites:
            virtual = seen.hash(seen.order("VIRTUAL", lane, site))
            count = sum(leased[mac, lane] for mac in seen.macs if seen.site(mac) == site)
            assert int(virtual.get("leased", 0)) == count, (lane, site)


def _check_sites(seen: _See) -> None:
    """What is counted of sites; nothing is left of one without tasks."""
    pending: Counter[str] = Counter()
    for (mac, _), count in seen.waiting().items():
        pending[seen.site(mac)] += count
    del pending[DEFAULT]
    counted = seen.hash(seen.keys.name("SITES_PENDING"))
    assert {site: int(count) for site, count in counted.items() if ":" not in site} == {
        site: count for site, count in pending.items() if count
    }
    assert int(counted.get(":all", 0)) == pending.total()
    for lane in seen.settings.lanes:
        if seen.settings.policy == "fair":
            able = {site for site in seen.sites if seen.get(seen.order("SCHEDULE", lane, site), [])}
            assert set(seen.scores("SITES", lane)) == able, lane
        lasting = [seen.keys.lane(lua, lane) + "@" for lua in ("VIRTUAL", "FINISH")]
        for name in (name for prefix in lasting for name in seen.held(prefix)):
            site = name.partition("@")[2]
            virtual = seen.hash(seen.order("VIRTUAL", lane, site))
            leased = int(virtual.get("leased", 0)) > 0
            has_tasks = bool(seen.get(seen.order("SCHEDULE", lane, site), []))
            assert has_tasks or leased, f"{name} is left"


def _check_membership(seen: _See) -> None:
    """I03, I04: the schedule holds the devices that can go and no others; so does `waiting`."""
    turns = seen.scores("TURNS")
    for lane in seen.settings.lanes:
        backoff = seen.scores("BACKOFF", lane)
        can_go = {
            mac
            for mac, queue_lane in seen.queues
            if queue_lane == lane
            and mac not in backoff
            and f"{lane}|{mac}" not in turns
            and seen.meta(mac).get("paused") != "1"
            and not _is_limited(seen, mac, lane)
        }
        assert set(seen.scheduled(lane)) == can_go, lane
        assert set(seen.scores("WAITING", lane)) == can_go, lane
        floor = {
            mac
            for mac in can_go
            if int(seen.meta(mac).get("leased", 0)) < int(seen.meta(mac).get("min_running", 0))
        }
        assert set(seen.scores("FLOOR", lane)) == floor, lane
        for mac, until in backoff.items():
            assert int(seen.meta(mac)[seen.field(lane, "unschedulable_until")]) == until, mac
    for turn in turns:
        lane, mac = turn.split("|")
        assert seen.get(seen.keys.device("ACTIVE", mac, lane), ""), f"{turn} has no token"


def _check_order(seen: _See) -> None:
    """S03, S04: the values that order devices are those that their tasks and turns give now."""
    for lane in seen.settings.lanes:
        waits = seen.scores("WAITING", lane)
        for mac, score in seen.scheduled(lane).items():
            meta = seen.meta(mac)
            oldest = int(meta[seen.field(lane, "oldest_created_at")])
            turn = int(meta.get(seen.field(lane, "turn")) or 0)
            served = int(meta.get(seen.field(lane, "served_at")) or 0)
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


def _is_limited(seen: _See, mac: str, lane: str) -> bool:
    """Whether a device is at its max_running, or has no token that the lane has noticed."""
    meta = seen.meta(mac)
    most, rate = int(meta.get("max_running", 0)), float(meta.get("rate", 0))
    if most and int(meta.get("leased", 0)) >= most:
        return True
    if not rate or "tokens" not in meta:
        return False
    gathered = (seen.now_ms - int(meta["tokens_at"])) * rate / 1000
    tokens = min(max(1, rate), float(meta["tokens"]) + gathered)
    # One that has a token by now is let in by the next sweep or claim.
    return tokens < 1 - 1e-6 or mac in seen.scores("THROTTLED", lane)


def _check_tags(seen: _See) -> None:
    """A tag stands in one place: in the schedule, beside leases, or remembered while ahead of v."""
    if seen.settings.policy != "fair":
        return
    for lane in seen.settings.lanes:
        scheduled = seen.scheduled(lane)
        for site in seen.sites:
            remembered = dict(seen.get(seen.order("FINISH", lane, site), []))
            # A device that drained and joined another site is remembered where it was.
            for mac in (mac for mac in remembered if seen.site(mac) == site):
                assert mac not in scheduled, lane
                assert seen.field(lane, "tag") not in seen.meta(mac), mac
            weights = [float(seen.meta(mac).get("weight", 1)) for mac in scheduled
                       if seen.site(mac) == site]  # fmt: skip
            extra = int(seen.hash(seen.order("VIRTUAL", lane, site)).get("extra", 0))
            assert extra == sum(round((weight - 1) * 1_000_000) for weight in weights), lane
        for mac in seen.macs:
            held = seen.field(lane, "tag") in seen.meta(mac)
            has_leases = int(seen.meta(mac).get(seen.field(lane, "leased"), 0)) > 0
            assert held == (has_leases and mac not in scheduled), (mac, lane)


def _check_totals(seen: _See) -> None:
    """I01: whatever was accepted is in the system or ended, and each of them once."""
    totals = {name: int(value) for name, value in seen.hash(seen.keys.name("TOTALS")).items()}
    states = Counter(record["state"] for record in seen.tasks.values())
    inside = sum(states[state] for state in TaskState if state not in TERMINAL)
    ended = sum(totals.get(state, 0) for state in TERMINAL)
    assert totals.get("accepted", 0) + totals.get("redriven", 0) == inside + ended
    for state in TERMINAL:
        assert states[state] <= totals.get(state, 0), state


def _check_capacity(seen: _See) -> None:
    """I25: the slots that a lane shows are those that its workers reported."""
    slots: defaultdict[str, int] = defaultdict(int)
    for worker in seen.scores("WORKERS"):
        row = seen.hash(seen.keys.name("WORKER") + worker)
        for lane in filter(None, row.get("lanes", "").split(",")):
            slots[lane] += int(row["slots"])
    capacity = seen.hash(seen.keys.name("CAPACITY"))
    for lane in seen.settings.lanes:
        assert int(capacity.get(f"slots:{lane}", 0)) == slots[lane], lane


def _check_bounds(seen: _See) -> None:
    """What bounds the lists (I21); every receipt has its end."""
    settings = seen.settings
    receipts = seen.hash(seen.keys.name("RECEIPTS"))
    ends = {key: float(receipt.split()[0]) for key, receipt in receipts.items()}
    assert ends == seen.scores("RECEIPTS_DUE")
    assert len(receipts) <= settings.idempotency_cap
    assert len(seen.dead) <= settings.dead_letter_cap
    assert len(seen.get(seen.keys.doorbell, [])) <= 1
    assert len(seen.get(seen.keys.name("ABNORMAL"), [])) <= settings.abnormal_cap
