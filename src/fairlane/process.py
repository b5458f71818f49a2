"""Processes, as they announced themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Process:
    """A running process as it announced itself; `digest` is that of the settings it has joined."""

    process_id: str
    role: str
    version: str
    digest: str
    age_ms: int
    report: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes that live, and which of them leads as dispatcher, or nothing."""

    leader: str
    living: tuple[Process, ...]
