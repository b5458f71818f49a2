"""/livez and /readyz: whether the process lives, and whether it can do its work.

The rule: livez asks nothing of anybody, so a store in trouble does not get processes restarted.
"""

from __future__ import annotations

from fastapi import APIRouter, Request

from fairlane.errors import FairlaneError
from fairlane.http.answer import Answer
from fairlane.http.gate import Gate
from fairlane.http.openapi import problems
from fairlane.http.problem import STORE_RETRY_S, Problem

router = APIRouter(tags=["health"])


class Health(Answer):
    """It is well."""

    status: str = "ok"


@router.get("/livez", summary="Tell that this process lives.")
async def livez() -> Health:
    """Answer, which is all that it takes."""
    return Health()


@router.get("/readyz", summary="Tell whether the service can do its work.", responses=problems(503))
async def readyz(request: Request) -> Health:
    """Answer 200, or 503 with the causes."""
    gate: Gate = request.app.state.gate
    try:
        await gate.ask(gate.client.ping())
    except FairlaneError as error:
        raise Problem(
            503, "NOT_READY", "the service is not ready", retry_after_s=STORE_RETRY_S,
            causes=[{"code": error.code, "what": type(error).__doc__}],
        ) from None  # fmt: skip
    return Health()
