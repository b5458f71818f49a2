"""Readiness: what is well with a system, what is not, and what to do about it.

The rule: a report is a pure function of one look (`probe.py`), so that `fairlane doctor` and
`/readyz` say the same. A check names what was found and, unless it is well, the next step. A system
is ready when it can accept tasks and keep them: a lane without workers is told, and fails its
check, but its tasks wait in safety.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from fairlane.client import AsyncClient, Client
from fairlane.errors import FairlaneError, StoreDenied
from fairlane.probe import Probe
from fairlane.services.check import Check, Verdict
from fairlane.services.store_checks import STORE_CHECKS, durability
from fairlane.services.system_checks import SYSTEM_CHECKS

__all__ = ["Check", "Report", "Verdict", "judge", "readiness", "readiness_async", "unreachable"]

#: What must not fail, or a task cannot be accepted and kept.
_ESSENTIAL: Final = frozenset(
    {"connection", "server", "durability", "eviction", "memory", "role", "writes", "settings"}
)


@dataclass(frozen=True, slots=True)
class Report:
    """All that was looked at. `durability` is none, rdb, aof-no, aof-everysec, aof-always, or ''.

    It is '' when the store could not be asked; `aof` when it keeps its fsync policy to itself.
    """

    checks: tuple[Check, ...]
    durability: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst verdict."""
        verdicts = {check.verdict for check in self.checks}
        order = (Verdict.FAIL, Verdict.WARN)
        return next((verdict for verdict in order if verdict in verdicts), Verdict.OK)

    @property
    def is_ready(self) -> bool:
        """Whether a task can be accepted and kept now."""
        failed = {check.name for check in self.checks if check.verdict is Verdict.FAIL}
        return not failed & _ESSENTIAL

    def check(self, name: str) -> Check | None:
        """Return the check of this name, or None when it could not be made."""
        return next((check for check in self.checks if check.name == name), None)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {
            "ready": self.is_ready,
            "verdict": str(self.verdict),
            "durability": self.durability,
            "checks": [asdict(check) for check in self.checks],
        }


def readiness(client: Client) -> Report:
    """Look at the store and judge what is found. Raises nothing: what fails is a check."""
    return judge(client.probe())


async def readiness_async(client: AsyncClient) -> Report:
    """Do the same for asyncio code."""
    return judge(await client.probe())


def unreachable(error: FairlaneError) -> Report:
    """Return the report on a store that gives no answer."""
    step = "start the store, or name the right one with FAIRLANE_STORE_URL"
    if isinstance(error, StoreDenied):
        step = "give FAIRLANE_STORE_URL the right user and password"
    return Report((Check("connection", Verdict.FAIL, str(error), step),))


def judge(found: Probe) -> Report:
    """Return the report on what a look has found."""
    if found.unreachable is not None:
        return unreachable(found.unreachable)
    checks = [check for judged in STORE_CHECKS for check in judged(found)]
    if found.refused is None:
        checks += [check for judged in SYSTEM_CHECKS for check in judged(found)]
    return Report(tuple(checks), durability(found))
