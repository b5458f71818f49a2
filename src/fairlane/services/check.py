"""A check: one thing that was looked at, and how well it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, e.g. `1 task` or `2 tasks`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class Verdict(StrEnum):
    """How well it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: its verdict, what was found, and the next step if any."""

    name: str
    verdict: Verdict
    found: str
    next_step: str = ""
