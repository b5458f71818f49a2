"""/v1/lanes, /v1/workers, /v1/watermark: the system's levels."""

from __future__ import annotations

from dataclasses import asdict
from typing import TypeVar

from fastapi import APIRouter, Request

from fairlane import verbs
from fairlane.http import answer
from fairlane.http.body import StrictRoute
from fairlane.http.caller import READERS, caller
from fairlane.http.gate import Gate
from fairlane.http.openapi import problems
from fairlane.http.problem import Problem
from fairlane.http.sentence import sentence
from fairlane.verbs import Verb

R = TypeVar("R")

router = APIRouter(route_class=StrictRoute, tags=["levels"])


@router.get("/v1/lanes", summary=sentence(verbs.InspectLanes), responses=problems(401, 403, 503))
async def inspect_lanes(request: Request) -> answer.Lanes:
    """Answer every lane."""
    return answer.Lanes(lanes=[*map(answer.lane, await _read(request, verbs.InspectLanes()))])


@router.get(
    "/v1/workers", summary=sentence(verbs.InspectWorkers), responses=problems(401, 403, 503)
)
async def inspect_workers(request: Request) -> answer.Workers:
    """Answer the workers."""
    return answer.Workers(
        workers=[*map(answer.worker, await _read(request, verbs.InspectWorkers()))]
    )


@router.get(
    "/v1/watermark", summary=sentence(verbs.ReadWatermark), responses=problems(401, 403, 404, 503)
)
async def read_watermark(request: Request) -> answer.Watermark:
    """Answer the last watermark; 404 when none was published for its TTL."""
    found = await _read(request, verbs.ReadWatermark())
    if found is None:
        raise Problem(
            404, "WATERMARK_NOT_FOUND", "no dispatcher or Beat has published one; is one running?"
        )
    return answer.Watermark(**asdict(found))


async def _read(request: Request, verb: Verb[R]) -> R:
    caller(request).needs(READERS)
    gate: Gate = request.app.state.gate
    return await gate.run(verb)
