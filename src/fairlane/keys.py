"""The whole keyspace, once.

The rule: no key is spelt anywhere else. Python asks `Keys` for a key; a script gets the same names
as Lua constants, written before the prelude by `Keys.lua()`, so a key is never sent and never
misspelt. Every key stands behind one prefix: the namespace, and an optional `{tag}` before it that
keeps a shard in one slot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from fairlane.errors import InvalidSettings

#: The lane whose keys carry no suffix: the document's own keys, when one lane serves all.
MAIN_LANE: Final = "main"
_NAMESPACE: Final = re.compile(r"[a-z][a-z0-9_.-]{0,31}")
_TAG: Final = re.compile(r"[a-z0-9_.-]{1,32}")


@dataclass(frozen=True, slots=True)
class Key:
    """One row of the keys table: what stands under a name, who writes it, what bounds it."""

    lua: str
    suffix: str
    shape: str
    type: str
    holds: str
    bound: str
    owner: str


def _key(lua: str, suffix: str, shape: str, kind: str, holds: str, bound: str, owner: str) -> Key:
    return Key(lua, suffix, shape, kind, holds, bound, owner)


_LANE = "[:<lane>]"
#: What belongs to a site other than `default` ends with its name.
_SITE = "[:<lane>][@<site>]"
# fmt: off
TABLE: Final[tuple[Key, ...]] = (
    _key("QUEUE", "mac:queue:", f"<mac>{_LANE}", "List", "task ids, oldest at the head",
         "the device's limit", "enqueue, claim, pop"),
    _key("META", "mac:meta:", "<mac>", "Hash",
         "pending_count, oldest_created_at, updated_at, leased of the device; per lane, behind "
         "`<lane>.`, the same and turn, served_at, unschedulable_until, the tag beside its "
         "leases; `<type>.run_ms`; at_site; weight, paused, limits and site if configured",
         "gone when the device drains, unless it is configured", "every verb that moves a task"),
    _key("SCHEDULE", "mac:schedule", _SITE, "ZSet",
         "the site's devices that can go now, and no others; ZREVRANGE order is service order",
         "devices with a queue", "enqueue, claim, sweep"),
    _key("WAITING", "mac:waiting", _LANE, "ZSet",
         "exactly the members of the lane's schedules by the later of oldest arrival and last "
         "turn", "as the schedules", "enqueue, claim, sweep"),
    _key("BACKOFF", "mac:backoff", _LANE, "ZSet", "device by the end of its backoff",
         "deferred devices", "defer, sweep"),
    _key("ACTIVE", "mac:active:", f"<mac>{_LANE}", "String, NX EX 900",
         "the fencing token of the device's two-step turn", "open turns", "claim_device, release"),
    _key("TURNS", "mac:turns", "", "ZSet", "`<lane>|<mac>` of every open turn by its deadline",
         "open turns", "claim_device, renew, release, sweep"),
    _key("VIRTUAL", "mac:virtual", _SITE, "Hash",
         "a site's v, work done, weights over 1, last newcomer's tag, leases and tag beside "
         "them; the lane's turns taken, pending tasks, and v and work over its sites",
         "one per lane, and per site that has tasks", "enqueue, claim"),
    _key("FINISH", "mac:finish", _SITE, "ZSet",
         "remembered tags of devices that are in no schedule and have no lease",
         "100,000; tags ≤ v are reaped", "claim, defer"),
    _key("FLOOR", "mac:floor", _LANE, "ZSet",
         "devices that can go and have less running than min_running, by their last turn",
         "devices with a min_running", "claim, finish, configure"),
    _key("THROTTLED", "mac:throttled", _LANE, "ZSet", "device by when it has a token again",
         "devices with a rate", "claim, sweep"),
    _key("SITES", "mac:sites", _LANE, "ZSet",
         "the sites that have devices in their schedule, by tag", "sites with tasks",
         "enqueue, claim, sweep"),
    _key("SITES_FINISH", "mac:sites_finish", _LANE, "ZSet",
         "remembered tags of sites that have no device in a schedule and no lease",
         "100,000; tags ≤ v are reaped", "claim, finish"),
    _key("SITES_PENDING", "sites_pending", "", "Hash",
         "pending tasks of every site but `default`, of all of these (`:all`), and the marks that "
         "a site or the store (`:full`) has met its limit, or its memory (`:store`: percent, until "
         "when)", "sites with tasks",
         "every verb that moves a task"),
    _key("MACS", "mac:pending", "", "ZSet", "device by when its backlog began, in whatever lane",
         "devices with a pending task", "every verb that moves a task"),
    _key("TASK", "task:", "<task_id>", "Hash",
         "the record: state, payload, attempt, failures, defers, times, result or cause",
         "gone result_ttl_ms after its end; a dead one with its dead letter", "every task verb"),
    _key("RECEIPTS", "receipts", "", "Hash",
         "hash of an idempotency key in its caller's scope → when its receipt ends, when the task "
         "was accepted, hash of the body, task id", "idempotency_cap; gone after "
         "idempotency_ttl_ms", "enqueue, sweep"),
    _key("RECEIPTS_DUE", "receipts_due", "", "ZSet", "the same hashes by when their receipt ends",
         "as the receipts", "enqueue, sweep"),
    _key("DELAYED", "delayed", "", "ZSet", "task by its own due time (Defer, retry)",
         "delayed tasks", "defer, fail, sweep"),
    _key("DEADLINES", "deadlines", "", "ZSet", "pending or delayed task by its expiry",
         "pending tasks", "enqueue, claim, purge"),
    _key("INFLIGHT", "inflight", _LANE, "ZSet", "leased or running task by its lease's deadline",
         "the lane's credits", "claim, start, finish, sweep"),
    _key("GLOBAL_PENDING", "global_pending", "", "String", "all pending tasks, delayed ones too",
         "one number", "every verb that moves a task"),
    _key("OVERLOADED", "overloaded_macs", "", "Set", "devices over max_per_mac_pending",
         "devices over the limit", "every verb that moves a task"),
    _key("DEAD_LETTER", "dead_letter", "", "List", "ids of dead tasks, newest first",
         "dead_letter_cap; a trimmed id takes its record along",
         "fail, defer, sweep, redrive, drop"),
    _key("WORKER", "worker:", "<hostname>:<pid>:<nonce>", "Hash, TTL 30 s",
         "a worker's report: lanes, slots, cpu, memory, gpus, active, reason, last_heartbeat",
         "living workers", "heartbeat, deregister"),
    _key("WORKERS", "workers", "", "ZSet", "worker id by the deadline of its next report",
         "living workers", "heartbeat, deregister, sweep"),
    _key("PROCESS", "process:", "<hostname>:<pid>:<nonce>", "Hash, TTL lease_ms",
         "role, version, settings digest and broker of a running process", "living processes",
         "announce, withdraw"),
    _key("PROCESSES", "processes", "", "ZSet, TTL lease_ms", "process by when its word is void",
         "1,000", "announce, withdraw"),
    _key("CAPACITY", "capacity", "", "Hash",
         "slots, pool and mean run time per lane; mean run time per task type and size class; "
         "workers with a GPU; the measured drain rate",
         "a few fields per lane and task type", "heartbeat, finish, sweep, watermark"),
    _key("TIMES", "times", _LANE, "String",
         "histograms of how long tasks waited, were on their way, ran, and took in all: 72 8-byte "
         "counts", "576 bytes per lane", "finish, fail, defer, cancel, sweep"),
    _key("TOKEN", "token:", "<token_id>", "Hash",
         "role, mac, site, name, issued_at, expires_at, revoked_at of an issued token",
         "gone a minute after the token's end", "issue_token, revoke_token"),
    _key("TOKENS", "tokens", "", "ZSet", "issued token by its end",
         "tokens that have not ended", "issue_token, revoke_token"),
    _key("REVOKED", "revoked", "", "ZSet", "revoked token by when it was revoked",
         "tokens that have not ended", "revoke_token, issue_token"),
    _key("FILES", "files", "", "ZSet", "stored file by when to look whether a task needs it",
         "files that were sent over HTTP", "keep_file, doom_files"),
    _key("FILE", "file:", "<sha256>", "ZSet", "tasks that named the file, by when they did",
         "gone with the file", "hold_files, doom_files"),
    _key("DOOMED_FILES", "doomed_files", "", "ZSet", "file that is being deleted by since when",
         "files until they are deleted", "doom_files, forget_files"),
    _key("WATERMARK", "watermark", "", "String (JSON), TTL interval + 5 s",
         "total_pending, mac_count, active_workers, timestamp and more", "one value", "watermark"),
    _key("HISTORY", "history", "", "Hash", "a row of counts, levels and waits by its minute",
         "1,440: a day", "record_minute"),
    _key("TOTALS", "totals", "", "Hash",
         "cumulative counts: accepted, done, failed, dead, expired, cancelled, refused by reason",
         "a field per outcome", "every task verb"),
    _key("CONFIG", "config", "", "Hash", "policy, lanes, limits, layout: one truth for all",
         "one field per setting", "join, migrate"),
    _key("EPOCH", "epoch", "", "Hash",
         "the id of a stretch in which nothing was lost, the sixteen ids before it, the sweeps "
         "counted; how and when the store was lost, until somebody takes note", "one value",
         "join, check_epoch, acknowledge"),
    _key("CLOCK", "clock", "", "String", "the mark that lets a caller send a virtual clock",
         "tests and the simulator only", "tests, simulate"),
    _key("LEADER", "leader", "", "String, PX", "the dispatcher that leads", "one value", "lead"),
    _key("DOORBELL", "doorbell", "", "List", "wakes the dispatcher", "one element",
         "enqueue, finish, heartbeat"),
    _key("EVENTS", "events", "", "Stream", "what happened, for the feed and for chaos verdicts",
         "MAXLEN ~ events_maxlen", "every task verb"),
)
# fmt: on

#: Written by the `/decter` route for another service to read; it keeps its name in every namespace.
ABNORMAL: Final = Key(
    "ABNORMAL", "abnormal:parsed_queue", "", "List, EXPIRE 20 s at each push",
    "abnormal data as it came, oldest first", "5,000; the oldest is dropped and counted",
    "report_abnormal",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of every key of one namespace.

    Raises InvalidSettings for a namespace or tag with other than letters, digits and `_.-`.
    """

    namespace: str = "sensitive"
    tag: str = ""

    def __post_init__(self) -> None:
        if _NAMESPACE.fullmatch(self.namespace) is None:
            raise InvalidSettings(
                f"namespace: {self.namespace!r}; use 1 to 32 of a-z, 0-9, `_.-`, a letter first"
            )
        if self.tag and _TAG.fullmatch(self.tag) is None:
            raise InvalidSettings(f"tag: {self.tag!r}; use 1 to 32 of a-z, 0-9, `_.-`")

    def name(self, lua: str) -> str:
        """Return the key (or the prefix of keys) that scripts know as `lua`, e.g. `SCHEDULE`."""
        return _constants(self.namespace, self.tag)[lua]

    @property
    def config(self) -> str:
        """The configuration: the one key that every script declares."""
        return self.name("CONFIG")

    @property
    def doorbell(self) -> str:
        """The list that a sleeping dispatcher blocks on."""
        return self.name("DOORBELL")

    @property
    def events(self) -> str:
        """The stream of what happened."""
        return self.name("EVENTS")

    @property
    def clock(self) -> str:
        """The virtual-clock mark."""
        return self.name("CLOCK")

    def lane(self, lua: str, lane: str) -> str:
        """Return a per-lane key, e.g. `lane("SCHEDULE", "ocr")`."""
        return self.name(lua) + ("" if lane == MAIN_LANE else f":{lane}")

    def device(self, lua: str, mac: str, lane: str | None = None) -> str:
        """Return a device's key, e.g. `device("QUEUE", mac, "ocr")` or `device("META", mac)`."""
        suffix = "" if lane is None or lane == MAIN_LANE else f":{lane}"
        return f"{self.name(lua)}{mac}{suffix}"

    def task(self, task_id: str) -> str:
        """Return the key of a task's record."""
        return self.name("TASK") + task_id

    def lua(self, names: Iterable[str]) -> str:
        """Return those of the `names` that are keys as one line of Lua constants."""
        constants, wanted = _constants(self.namespace, self.tag), set(names)
        used = [name for name in constants if name in wanted]
        return f"local {', '.join(used)} = {', '.join(repr(constants[name]) for name in used)}"

    def types(self, names: Iterable[str]) -> str:
        """Return those of the `names` that are keys, and CONFIG, as Lua: what type each must be."""
        wanted = {*names, "CONFIG"} - {"CLOCK"}  # an existing mark is a mark
        rows = [
            f"{{ {key.lua}, '{key.type.split()[0].strip(',').lower()}', "
            f"{str('<lane>' in key.shape).lower()}, {str(key.suffix.endswith(':')).lower()} }}"
            for key in TABLE
            if key.lua in wanted
        ]
        return f"{{ {', '.join(rows)} }}"


@cache
def _constants(namespace: str, tag: str) -> Mapping[str, str]:
    before = f"{{{tag}}}" if tag else ""
    names = {key.lua: f"{before}{namespace}:{key.suffix}" for key in TABLE}
    return names | {ABNORMAL.lua: f"{before}{ABNORMAL.suffix}"}
