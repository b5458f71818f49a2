"""What settings must be: the type, the range, and what two of them cannot both be.

The rule: a violation is one sentence that names the setting; all of them are told at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fairlane.settings.settings import Settings

SECRET_CHARACTERS: Final = 32
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "preset": ("default", "seed"),
    "flow": ("claim", "turns"),
    "policy": ("fair", "aging"),
    "order": ("fifo", "lifo"),
    "admission": ("fair", "system"),
    "on_no_capacity": ("hold", "defer"),
    "backpressure_cpu": ("others", "total"),
    "durability": ("warn", "strict"),
    "log_format": ("text", "json"),
    "trace_export": ("", "otlp"),
}
_MAY_BE_ZERO: Final = (
    "device_requests_per_s",
    "requests_per_s",
    "defer_jitter_percent",
    "max_per_site_pending",
    "min_replicas",
)


def violations(settings: Settings) -> list[str]:
    """Return every violation, or those of single settings first if there are any."""
    return [*_wrong_types(settings), *_wrong_values(settings)] or _disagreements(settings)


def _wrong_types(settings: Settings) -> list[str]:
    return [
        f"{item.name}: expected {type(item.default).__name__}, got {_shown(item, settings)}"
        for item in fields(settings)
        if (
            item.default is not MISSING
            and not isinstance(getattr(settings, item.name), _accepted(item.default))
        )
        or isinstance(getattr(settings, item.name), bool)
    ]


def _shown(item: Field[Any], settings: Settings) -> str:
    """Return a value for a message, unless it is a secret."""
    value = getattr(settings, item.name)
    return repr(value) if item.repr else f"a secret {type(value).__name__}"


def _accepted(default: object) -> tuple[type, ...]:
    return (
        (int, float)
        if isinstance(default, float)
        else (type(default),) + ((Path,) if isinstance(default, Path) else ())
    )


def _wrong_values(settings: Settings) -> list[str]:
    problems = [
        f"{name}: {getattr(settings, name)!r} is none of {', '.join(choices)}"
        for name, choices in _CHOICES.items()
        if getattr(settings, name) not in choices
    ]
    for item in fields(settings):
        value = getattr(settings, item.name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        least = 0 if item.name in _MAY_BE_ZERO else 1
        if not (0 < value <= 10**12 or value == least):
            problems.append(f"{item.name}: {value} is not between {least} and 10^12")
    return problems


def _disagreements(settings: Settings) -> list[str]:
    """Return what two settings cannot both be."""
    rules = (
        (settings.min_batch_size <= settings.batch_size, "min_batch_size is over batch_size"),
        (settings.low_mark_percent <= 100, "low_mark_percent is over 100"),
        (settings.store_full_percent <= 100, "store_full_percent is over 100"),
        (settings.defer_jitter_percent <= 100, "defer_jitter_percent is over 100"),
        (
            len({rule.prefix for rule in settings.sites}) == len(settings.sites),
            "sites: one prefix is in two sites",
        ),
        (
            settings.defer_backoff_base_ms <= settings.defer_backoff_max_ms,
            "defer_backoff_base_ms is over defer_backoff_max_ms",
        ),
        (
            settings.starvation_after_ms <= settings.aging_max_wait_ms,
            "starvation_after_ms is over aging_max_wait_ms: no device would ever count as starved",
        ),
        (
            settings.heartbeat_every_ms < settings.lease_ms,
            "heartbeat_every_ms must be under lease_ms: running tasks would be taken for lost",
        ),
        (settings.turn_lease_ms <= settings.active_ttl_ms, "turn_lease_ms is over active_ttl_ms"),
        (settings.resume_percent <= settings.pause_percent, "resume_percent is over pause_percent"),
        (settings.pause_percent <= 100, "pause_percent is over 100"),
        (
            not settings.token_secret or len(settings.token_secret) >= SECRET_CHARACTERS,
            f"token_secret: a secret has {SECRET_CHARACTERS} characters or more",
        ),
        (bool(settings.token_audience), "token_audience: it is empty"),
        (bool(settings.task_types), "task_types: at least one is needed"),
        (
            len({kind.name for kind in settings.task_types}) == len(settings.task_types),
            "task_types: a name stands twice",
        ),
        (
            "main" not in settings.lanes or settings.lanes == ("main",),
            "task_types: the lane `main` has the document's own keys, so it must be the only lane",
        ),
    )
    return [problem for holds, problem in rules if not holds]
