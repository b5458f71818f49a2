"""Settings: one frozen value, validated once, from the environment or from keywords.

The rule: two kinds, never mixed. *Shared* settings (policy, lanes, limits) are one truth for all
processes: they live in the store's `config`, written by the first process or by `fairlane migrate`.
A value that differs from its default is an opinion and must agree with the store
(`CONFIG_MISMATCH` names both); a default is no opinion, the store decides. *Process* settings
(URLs, folders) belong to one process. This is the only module that reads the environment.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Final, get_type_hints

from fairlane import formulas
from fairlane.errors import InvalidSettings
from fairlane.settings.rules import violations
from fairlane.settings.text import parse, text_of
from fairlane.site import SiteRule
from fairlane.tasktype import DEFAULT_TASK_TYPES, SEED_TASK_TYPES, TaskType

PREFIX: Final = "FAIRLANE_"
_DATA_DIR: Final = Path(".fairlane")
#: The requirement document, to the letter as far as atomic steps allow (design section 9).
SEED: Final[Mapping[str, Any]] = {
    "flow": "turns",
    "policy": "aging",
    "order": "lifo",
    "admission": "system",
    "on_no_capacity": "defer",
    "backpressure_cpu": "total",
    "task_types": SEED_TASK_TYPES,
    "resume_percent": 75,
    "defer_jitter_percent": 0,
}


def _shared(default: Any, about: str) -> Any:
    return field(default=default, metadata={"about": about, "shared": True})


def _process(default: Any, about: str, **more: Any) -> Any:
    return field(default=default, metadata={"about": about, "shared": False}, **more)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every setting of fairlane. Times are milliseconds, sizes bytes, loads percent.

    `preset="seed"` is the requirement document's values, under those given beside it.

    Raises InvalidSettings naming every violation at once.
    """

    store_url: str = _process(
        "embedded://", "the store: embedded://[path], redis://, redis+sentinel://, …", repr=False
    )
    broker_url: str = _process("", "Celery's broker; empty: the store", repr=False)
    namespace: str = _process("sensitive", "what every key begins with")
    tag: str = _process("", "a {hash tag} before the namespace")
    data_dir: Path = _process(_DATA_DIR, "what embedded:// and the file store write to")
    files_url: str = _process(
        "",
        "stored files: a folder (of data_dir, unless it begins with /), or s3://bucket/folder; "
        "empty: data_dir/files",
    )
    max_file_bytes: int = _process(20 * 1024 * 1024, "a file that is sent over HTTP")
    keywords_files: tuple[Path, ...] = _process((), "keyword lists of the text handler, with `:`")
    durability: str = _process("warn", "a store that can lose data: warn, or strict = refuse")
    min_replicas: int = _process(0, "replicas that must have a task before it counts as accepted")
    socket_timeout_ms: int = _process(5_000, "give up on a store or broker that hangs")
    backpressure_cpu: str = _process("others", "count only the load of others, or total")
    token_secret: str = _process("", "signs and verifies tokens; ≥ 32 characters", repr=False)
    token_keys_dir: str = _process(
        "", "the folder of the keys of tokens, as files_url; empty: data_dir/keys"
    )
    token_jwks_file: str = _process("", "a JWK set whose keys verify tokens, too")
    device_requests_per_s: int = _process(100, "HTTP requests of a device's token, 0 = no limit")
    requests_per_s: int = _process(0, "HTTP requests of any other token, 0 = no limit")
    token_audience: str = _process("fairlane", "whom tokens are for: their `aud`")
    pause_percent: int = _process(75, "a worker over this CPU, memory or GPU memory offers nothing")
    resume_percent: int = _process(65, "and offers again below this")
    log_format: str = _process("text", "lines of the logs: text for people, json for programs")
    trace_export: str = _process("", "OpenTelemetry spans: otlp, to where OTEL_* variables say")
    fault_tickets: str = _process("", "the fault suite's folder of tickets; empty: no fault points")
    dispatch_every_ms: int = _process(15_000, "Beat: the safety net of the dispatcher")
    purge_every_ms: int = _process(300_000, "Beat: expired tasks")
    sweep_every_ms: int = _process(5_000, "Beat: lost leases, ended backoffs, dead turns")
    heartbeat_every_ms: int = _process(15_000, "a worker's report")

    preset: str = _shared("default", "seed = the requirement document's formulas, limits and flow")
    flow: str = _shared("claim", "a turn is one step on credits, or the document's two on Beat")
    policy: str = _shared("fair", "who is next: start-time fair queueing, or the document's aging")
    order: str = _shared("fifo", "in a device's queue: oldest first, or newest first")
    admission: str = _shared("fair", "refuse the flooders first, or everybody (the document's)")
    on_no_capacity: str = _shared("hold", "no worker for a task: it waits, or its device backs off")
    task_types: tuple[TaskType, ...] = _shared(DEFAULT_TASK_TYPES, "task types, lanes and queues")
    max_total_pending: int = _shared(formulas.MAX_TOTAL_PENDING, "G_max: pending tasks in all")
    max_per_mac_pending: int = _shared(formulas.MAX_PER_MAC_PENDING, "pending tasks of one device")
    max_per_site_pending: int = _shared(0, "pending tasks of one site, 0 = no limit of its own")
    store_full_percent: int = _shared(90, "no task is taken in while maxmemory is used over this")
    low_mark_percent: int = _shared(90, "a limit that was met holds until the count falls to this")
    sites: tuple[SiteRule, ...] = _shared((), "which MAC prefixes are which site: 02:42=lab,…")
    max_payload_bytes: int = _shared(256 * 1024, "a task's encoded data")
    max_result_bytes: int = _shared(256 * 1024, "a task's encoded result")
    task_ttl_ms: int = _shared(3_600_000, "a task older than this is expired")
    result_ttl_ms: int = _shared(3_600_000, "how long an ended task stays readable")
    idempotency_ttl_ms: int = _shared(86_400_000, "how long an idempotency key stands for its task")
    idempotency_cap: int = _shared(
        1_000_000, "idempotency keys kept; then tasks with one are refused"
    )
    file_ttl_ms: int = _shared(3_600_000, "how long a stored file stays that no task needs")
    aging_max_wait_ms: int = _shared(formulas.AGING_MAX_WAIT_MS, "W_max")
    aging_weight: float = _shared(formulas.AGING_WEIGHT, "α")
    starvation_after_ms: int = _shared(formulas.STARVATION_AFTER_MS, "T_starve")
    batch_size: int = _shared(formulas.BATCH_SIZE, "B_norm")
    min_batch_size: int = _shared(formulas.MIN_BATCH_SIZE, "B_min")
    max_defers: int = _shared(formulas.MAX_DEFERS, "defers before a task is dead")
    defer_backoff_base_ms: int = _shared(formulas.DEFER_BACKOFF_BASE_MS, "the first backoff")
    defer_backoff_max_ms: int = _shared(formulas.DEFER_BACKOFF_MAX_MS, "the longest backoff")
    max_attempts: int = _shared(3, "starts that may fail or be lost before a task is dead")
    defer_jitter_percent: int = _shared(10, "a backoff lasts up to this much longer, 0 = exact")
    retry_backoff_base_ms: int = _shared(5_000, "the wait after the first failed attempt; doubles")
    lease_ms: int = _shared(30_000, "a lease without a heartbeat (⅔: a start); a worker's TTL")
    active_ttl_ms: int = _shared(900_000, "the longest two-step turn: the lock's EX")
    turn_lease_ms: int = _shared(8_000, "a two-step turn without a renewal")
    target_delay_ms: int = _shared(4, "how long a leased task may wait in the broker, about")
    dead_letter_cap: int = _shared(10_000, "dead letters kept; the oldest is dropped and counted")
    abnormal_cap: int = _shared(5_000, "abnormal records kept; the oldest is dropped and counted")
    abnormal_ttl_ms: int = _shared(20_000, "abnormal records end this long after the last one")
    watermark_every_ms: int = _shared(15_000, "Beat: the watermark, which ends 5 s after the next")
    events_maxlen: int = _shared(10_000, "events kept in the stream, about")

    def __post_init__(self) -> None:
        if problems := violations(self):
            raise InvalidSettings("; ".join(problems))
        # 2 and 2.0 are one value: the store and the digest must see one text.
        object.__setattr__(self, "aging_weight", float(self.aging_weight))

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read `FAIRLANE_<FIELD>` variables; a preset's values give way to those set beside it.

        `FAIRLANE_TASK_TYPES` is a JSON array of objects with the fields of TaskType.
        Raises InvalidSettings for an unknown variable or a value that does not parse.
        """
        given = os.environ if environ is None else environ  # noqa: TID251 - the one place
        hints = get_type_hints(cls)
        values: dict[str, Any] = {}
        problems: list[str] = []
        for name, text in given.items():
            if not name.startswith(PREFIX):
                continue
            setting = name.removeprefix(PREFIX).lower()
            if setting not in hints:
                problems.append(f"{name}: no such setting; {_meant(setting, hints)}")
                continue
            try:
                values[setting] = parse(hints[setting], text)
            except (ValueError, TypeError, InvalidSettings) as error:
                problems.append(f"{name}: {error}")
        if problems:
            raise InvalidSettings("; ".join(problems))
        return cls(**values)

    def environ(self) -> dict[str, str]:
        """Return the environment variables that make these settings again in another process."""
        return {
            PREFIX + item.name.upper(): text_of(getattr(self, item.name))
            for item in fields(self)
            if self._says(item)
        }

    def shared(self) -> dict[str, str]:
        """Return the shared settings as the store keeps them, text by field name."""
        return {item.name: text_of(getattr(self, item.name)) for item in shared_fields()}

    def constants(self) -> dict[str, str | float]:
        """Return the shared settings that scripts compute with, and the lanes as a list."""
        values = {item.name: getattr(self, item.name) for item in shared_fields()}
        del values["task_types"], values["sites"]
        return {**values, "lanes": ",".join(self.lanes), "types": ",".join(self.lane_by_type)}

    @cached_property
    def digest(self) -> str:
        """What tells one set of shared settings from another."""
        text = json.dumps(self.shared(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def opinions(self) -> dict[str, str]:
        """Return the shared settings on which this process insists: those that are no default."""
        return {
            item.name: text_of(getattr(self, item.name))
            for item in shared_fields()
            if self._says(item)
        }

    def _says(self, item: Any) -> bool:
        """Whether a value was given: it is not the default, or not what the preset would have."""
        value = getattr(self, item.name)
        preset = SEED if self.preset == "seed" else {}
        return bool(value != item.default or value != preset.get(item.name, item.default))

    def adopt(self, stored: Mapping[str, str]) -> Settings:
        """Return these settings with the store's shared values in place of one's own.

        A process setting that belongs to the store's preset comes along, unless it was given; and
        one that was not given reports often enough for the store's leases.
        """
        hints = get_type_hints(Settings)
        preset = SEED if stored.get("preset") == "seed" else {}
        values = {
            item.name: preset[item.name]
            for item in fields(self)
            if item.name in preset and getattr(self, item.name) == item.default
        } | {
            item.name: parse(hints[item.name], stored[item.name])
            for item in shared_fields()
            if item.name in stored
        }
        lease_ms = values.get("lease_ms", self.lease_ms)
        every = Settings.__dataclass_fields__["heartbeat_every_ms"]
        if self.heartbeat_every_ms == every.default and every.default >= lease_ms:
            values["heartbeat_every_ms"] = max(1, lease_ms // 2)
        return replace(self, **values)

    @cached_property
    def lanes(self) -> tuple[str, ...]:
        """The lanes, in the order in which the task types name them first."""
        return tuple(dict.fromkeys(kind.lane for kind in self.task_types))

    @cached_property
    def lane_by_type(self) -> Mapping[str, str]:
        """The lane of every task type."""
        return {kind.name: kind.lane for kind in self.task_types}

    def site_of(self, mac: str) -> str:
        """Return the site of a canonical MAC by the longest prefix that matches, or nothing."""
        rules = [rule for rule in self.sites if mac.startswith(rule.prefix)]
        return max(rules, key=lambda rule: len(rule.prefix)).site if rules else ""

    @property
    def files_dir(self) -> Path:
        """Where files that tasks name are stored, unless `files_url` names a bucket.

        A relative folder is one in `data_dir`: service and worker have working directories of their
        own, and would look for the same file in two places.
        """
        is_folder = self.files_url and "://" not in self.files_url
        return self.data_dir / (self.files_url if is_folder else "files")

    @property
    def token_keys_folder(self) -> Path:
        """Where the keys of tokens are; a relative folder is one in `data_dir`."""
        return self.data_dir / (self.token_keys_dir or "keys")

    def task_type(self, name: str) -> TaskType | None:
        """Return the task type of this name, or None."""
        return next((kind for kind in self.task_types if kind.name == name), None)


_init = Settings.__init__


def _init_with_preset(self: Settings, **values: Any) -> None:
    preset = SEED if values.get("preset") == "seed" else {}
    _init(self, **{**preset, **values})


# A dataclass cannot let one field give defaults to others, and Settings(preset="seed") must not be
# a label that changes nothing.
Settings.__init__ = _init_with_preset  # type: ignore[method-assign]


def other_variables() -> dict[str, str]:
    """Return this environment without fairlane's own variables, for a process that gets its own."""
    everything = os.environ.items()  # noqa: TID251 - the one place
    return {name: value for name, value in everything if not name.startswith(PREFIX)}


def variable_of(setting: str) -> str:
    """Return the variable that sets a setting in this environment, or nothing."""
    name = PREFIX + setting.upper()
    return name if name in os.environ else ""  # noqa: TID251 - the one place


def _meant(setting: str, known: Iterable[str]) -> str:
    close = get_close_matches(setting, known, n=1, cutoff=0.7)
    if close:
        return f"did you mean {PREFIX}{close[0].upper()}? `fairlane settings` lists all"
    return "`fairlane settings` lists them"


def shared_fields() -> list[Any]:
    """Return the dataclass fields of the shared settings, in their order."""
    return [item for item in fields(Settings) if item.metadata["shared"]]
