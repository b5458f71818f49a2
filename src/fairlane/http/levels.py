"""/v1/lanes, /v1/workers, /v1/watermark, /v1/history, /v1/settings: the system's levels."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from fairlane import verbs
from fairlane.http import answer
from fairlane.http.body import StrictRoute
from fairlane.http.caller import READERS, caller
from fairlane.http.gate import Gate
from fairlane.http.openapi import problems
from fairlane.http.problem import Problem
from fairlane.http.sentence import sentence
from fairlane.settings import told
from fairlane.verbs import Verb
from fairlane.verbs.history import MOST_MINUTES, Minute

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


class Span(BaseModel):
    """How far back."""

    model_config = ConfigDict(extra="forbid")
    minutes: int = Field(60, ge=1, le=MOST_MINUTES)


class LaneLevel(answer.Answer):
    """A lane at the end of a minute."""

    name: str
    pending: int
    leased: int
    slots: int


class HistoryMinute(answer.Answer):
    """What happened in the `seconds` before `at`, and the levels then.

    `finished` are tasks that ended in whatever way. The waits are those of all whose first attempt
    ended, until they were handed out; null where none did. `jain` is of a sample, null of too few:
    Jain's index of the work that devices got, each by its weight, that had tasks all the time; 1 is
    perfectly fair.
    """

    at: str | None
    seconds: float
    enqueued: int
    finished: int
    done: int
    failed: int
    dead: int
    expired: int
    cancelled: int
    refused: int
    throughput_per_second: float
    wait_p50_seconds: float | None
    wait_p99_seconds: float | None
    jain: float | None
    pending: int
    leased: int
    delayed: int
    dead_letters: int
    lanes: list[LaneLevel]


class History(answer.Answer):
    """Minutes, oldest first; one that nobody recorded is part of the next."""

    minutes: list[HistoryMinute]


@router.get(
    "/v1/history",
    summary=sentence(verbs.ReadHistory),
    responses=problems(401, 403, 422, 503),
    response_model=History,
)
async def read_history(request: Request, span: Annotated[Span, Query()]) -> Response:
    """Answer a row a minute, of a day at most. The store keeps them over restarts."""
    found = await _read(request, verbs.ReadHistory(span.minutes))
    # A day has some 40,000 values: they are encoded once, without a model each.
    told = msgspec.json.encode({"minutes": [*map(_minute, found)]})
    return Response(told, media_type="application/json")


class Setting(answer.Answer):
    """A setting, its value as text, and its source: a variable, default, preset, the store."""

    setting: str
    value: str
    source: str
    about: str
    shared: bool


class Settings(answer.Answer):
    """Every setting of this service, as agreed with the store."""

    settings: list[Setting]


@router.get(
    "/v1/settings",
    summary="Tell every setting, its value and where that came from.",
    responses=problems(401, 403, 503),
)
async def settings(request: Request) -> Settings:
    """Answer the settings of this process; `shared` ones are the store's. Secrets are masked."""
    caller(request).needs(READERS)
    gate: Gate = request.app.state.gate
    await gate.ask(gate.client.ping())
    return Settings(settings=[Setting(**asdict(each)) for each in told(gate.client.settings)])


def _minute(found: Minute) -> dict[str, Any]:
    """Return a `HistoryMinute` as plain values."""
    return {
        "at": answer.when(found.at_ms),
        "seconds": found.seconds,
        "enqueued": found.enqueued,
        "finished": found.finished,
        "done": found.done,
        "failed": found.failed,
        "dead": found.dead,
        "expired": found.expired,
        "cancelled": found.cancelled,
        "refused": found.refused,
        "throughput_per_second": round(found.done / found.seconds, 3),
        "wait_p50_seconds": _seconds(found.wait_p50_ms),
        "wait_p99_seconds": _seconds(found.wait_p99_ms),
        "jain": found.jain,
        "pending": found.pending,
        "leased": found.leased,
        "delayed": found.delayed,
        "dead_letters": found.dead_letters,
        "lanes": found.lanes,
    }


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


async def _read(request: Request, verb: Verb[R]) -> R:
    caller(request).needs(READERS)
    gate: Gate = request.app.state.gate
    return await gate.run(verb)
