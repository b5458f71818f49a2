"""A store as it is at one moment: every key, read raw by one script.

The rule: nothing here trusts a counter or a verb; what is asked of a store is counted anew from its
records and lists. A key that no row of the keys table names, or that has another type, is an error.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from fairlane.keys import ABNORMAL, TABLE, Keys
from fairlane.model import TaskState
from fairlane.settings import Settings

DeviceLane: TypeAlias = tuple[str, str]  # mac, lane
DEFAULT: Final = "default"
WAITING: Final = (TaskState.PENDING, TaskState.DELAYED)
LEASED: Final = (TaskState.LEASED, TaskState.RUNNING)
# With its flags it runs in a full store too.
_DUMP: Final = """#!lua flags=no-writes
local call, held = redis.call, {}
for _, name in ipairs(call('KEYS', '*')) do
  local kind, value = call('TYPE', name).ok, nil
  if kind == 'hash' then
    value = call('HGETALL', name)
  elseif kind == 'zset' then
    value = call('ZRANGE', name, 0, -1, 'WITHSCORES')
  elseif kind == 'list' then
    value = call('LRANGE', name, 0, -1)
  elseif kind == 'set' then
    value = call('SMEMBERS', name)
  elseif kind == 'stream' then
    value = tostring(call('XLEN', name))
  else
    value = call('GET', name)
  end
  held[#held + 1] = { name, kind, call('PTTL', name), value }
end
return held
"""


@dataclass(frozen=True)
class Held:
    """The value of a key: a dict, a list, a set of names, scores by member, or a text."""

    kind: str
    value: Any
    lives_ms: int


def read(redis: Any) -> dict[str, Held]:
    """Return all that a store holds, by key. It is one script: no step of another comes between."""
    held = {}
    for name, kind, lives_ms, value in redis.eval(_DUMP, 0):
        held[_text(name)] = Held(_text(kind), _value(_text(kind), value), int(lives_ms))
    return held


def _value(kind: str, raw: Any) -> Any:
    if kind in ("string", "stream"):
        return _text(raw)
    items = [*map(_text, raw)]
    match kind:
        case "hash":
            return dict(zip(items[::2], items[1::2], strict=True))
        case "zset":
            return {name: float(score) for name, score in zip(items[::2], items[1::2], strict=True)}
        case "set":
            return set(items)
        case _:
            return items


def _text(raw: str | bytes) -> str:
    # Payloads are opaque bytes: whatever they are, they come back as they were.
    return raw if isinstance(raw, str) else raw.decode(errors="surrogateescape")


class Seen:
    """The raw store, and what can be recounted from it."""

    def __init__(
        self,
        redis: Any,
        keys: Keys,
        settings: Settings,
        now_ms: int,
        *,
        was_migrated: bool = False,
    ) -> None:
        self.keys, self.settings, self.now_ms = keys, settings, now_ms
        self.was_migrated = was_migrated
        self.raw = read(redis)
        check_names(self.raw, keys, settings)
        prefix = keys.name("TASK")
        self.tasks: dict[str, dict[str, str]] = {
            name.removeprefix(prefix): held.value
            for name, held in self.raw.items()
            if name.startswith(prefix)
        }
        self.macs = {record["mac"] for record in self.tasks.values()} | {
            name.removeprefix(keys.name("META")) for name in self.held(keys.name("META"))
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

    @cached_property
    def digest(self) -> dict[str, tuple[str, Any]]:
        """What tells two moments apart: every key and its value, but no time to live."""
        return {name: (held.kind, held.value) for name, held in self.raw.items()}

    def lives_ms(self, task: str) -> int:
        """Return how long a record lives, -1 for ever."""
        return self.raw[self.keys.task(task)].lives_ms

    def held(self, prefix: str) -> list[str]:
        """Return the names of the keys that begin so."""
        return [name for name in self.raw if name.startswith(prefix)]

    def get(self, name: str, otherwise: Any) -> Any:
        """Return a key's value."""
        held = self.raw.get(name)
        return otherwise if held is None else held.value

    def scores(self, lua: str, lane: str | None = None) -> dict[str, float]:
        """Return a sorted set."""
        name = self.keys.name(lua) if lane is None else self.keys.lane(lua, lane)
        found: dict[str, float] = self.get(name, {})
        return found

    def hash(self, name: str) -> dict[str, str]:
        """Return a hash."""
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
            members = self.get(self.order("SCHEDULE", lane, site), {})
            assert all(self.site(mac) == site for mac in members) or (
                self.settings.policy == "aging"
            )
            found |= members
        return found

    def meta(self, mac: str) -> dict[str, str]:
        """Return a device's hash."""
        return self.hash(self.keys.device("META", mac))

    def number(self, mac: str, lane: str, name: str) -> int:
        """Return a number of a device's hash in a lane, 0 when it is not there."""
        return int(self.meta(mac).get(self.field(lane, name)) or 0)

    def field(self, lane: str, name: str) -> str:
        """Return a lane's field of a device's hash."""
        return name if lane == "main" else f"{lane}.{name}"

    def waiting(self) -> Counter[DeviceLane]:
        """Count pending and delayed tasks per device and lane, from their lists."""
        counts = Counter({place: len(queue) for place, queue in self.queues.items()})
        counts.update((self.tasks[task]["mac"], self.tasks[task]["lane"]) for task in self.delayed)
        return counts

    def leases(self, lane: str) -> dict[str, float]:
        """Return a lane's leased tasks and their deadlines."""
        return self.scores("INFLIGHT", lane)

    def virtual(self, lane: str, site: str = DEFAULT) -> dict[str, str]:
        """Return the virtual time of a site's order, and the lane's counts beside it."""
        return self.hash(self.order("VIRTUAL", lane, site))


def check_names(raw: dict[str, Held], keys: Keys, settings: Settings) -> None:
    """Assert that every key is one of the table, with the type that it has there."""
    rows = {keys.name(row.lua): row.type for row in (*TABLE, ABNORMAL)}
    for name, held in raw.items():
        plain = name.partition("@")[0]
        for lane in settings.lanes:
            plain = plain.removesuffix(f":{lane}")
        longest = max(
            (row for row in rows if row.endswith(":") and name.startswith(row)), default=""
        )
        row = rows.get(name) or rows.get(plain) or rows.get(longest)
        assert row is not None, f"no row of the table names {name}"
        told = row.partition(",")[0].split()[0].lower()
        assert held.kind == told, f"{name} is a {held.kind}, by the table a {told}"
