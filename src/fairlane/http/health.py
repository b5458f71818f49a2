"""/livez and /readyz: whether the process lives, and whether it can do its work.

The rule: livez asks nothing of anybody, so a store in trouble does not get processes restarted, and
it is the only path that needs no credentials.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from fairlane.errors import FairlaneError
from fairlane.http.answer import Answer
from fairlane.http.caller import READERS, caller
from fairlane.http.gate import Gate
from fairlane.http.openapi import problems
from fairlane.http.problem import STORE_RETRY_S, Problem
from fairlane.services.readiness import Report, Verdict, readiness_async, unreachable

router = APIRouter(tags=["health"])


class Health(Answer):
    """The process lives."""

    status: str = "ok"


class Check(Answer):
    """One thing that was looked at: its verdict, what was found, and the next step if any."""

    name: str
    verdict: str
    found: str
    next_step: str


class Readiness(Answer):
    """All that was looked at, as `fairlane doctor` tells it."""

    ready: bool
    verdict: str
    durability: str
    checks: list[Check]


@router.get("/livez", summary="Tell that this process lives.")
async def livez() -> Health:
    """Answer, which is all that it takes."""
    return Health()


@router.get(
    "/readyz",
    summary="Tell whether tasks can be accepted and kept, and what is not well.",
    responses=problems(401, 403, 503),
)
async def readyz(request: Request) -> Readiness:
    """Answer every check; 503 with those that failed when no task can be accepted and kept."""
    caller(request).needs(READERS)
    gate: Gate = request.app.state.gate
    try:
        report = await gate.ask(readiness_async(gate.client))
    except FairlaneError as error:
        report = unreachable(error)
    if not report.is_ready:
        raise _not_ready(report)
    return Readiness.model_validate(report.as_dict())


def _not_ready(report: Report) -> Problem:
    told: dict[str, Any] = report.as_dict()
    causes = [check for check in report.checks if check.verdict is Verdict.FAIL]
    return Problem(
        503,
        "NOT_READY",
        "; ".join(f"{check.name}: {check.found}" for check in causes),
        retry_after_s=STORE_RETRY_S,
        **told,
    )
