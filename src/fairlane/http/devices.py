"""/v1/devices: listed, searched, read, configured.

The rule: one call looks at so many devices and says where to go on, whatever it was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from fairlane import verbs
from fairlane.client.calls import inspect_device as device_verb
from fairlane.errors import FairlaneError, InvalidMac
from fairlane.http import answer
from fairlane.http.body import StrictRoute
from fairlane.http.caller import OPERATORS, READERS, caller
from fairlane.http.cursor import cursor_of, offset_of
from fairlane.http.gate import Gate, within_limit
from fairlane.http.openapi import SITE_PATTERN, Cursor, MacInPath, problems
from fairlane.http.sentence import sentence
from fairlane.mac import canonical
from fairlane.model import Device
from fairlane.verbs.devices import MAX_RATE_PER_S, MAX_RUNNING, MAX_WEIGHT

router = APIRouter(route_class=StrictRoute, tags=["devices"])

MOST: Final = 200
#: What one call looks at: names are cheap, a whole device is not.
_NAMES, _LOOKS, _AT_ONCE = 10_000, 600, 1_000
_VERSION: Final = re.compile('"[0-9a-f]{16}"')


State = Literal["going", "paused", "backoff", "rate", "max_running", "turn"]


class Page(BaseModel):
    """Which devices, how many, and from where on."""

    model_config = ConfigDict(extra="forbid")
    q: str = Field("", max_length=40)
    state: State | None = None
    limit: int = Field(50, ge=1, le=MOST)
    cursor: Cursor = ""


def _whole(value: Any) -> Any:
    """Return 2.0 as 2: in JSON they are one number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Running = Annotated[int, Field(ge=0, le=MAX_RUNNING), BeforeValidator(_whole)]


#: None at all, or one that can be told from it.
_Rate = Annotated[
    float,
    Field(ge=0, le=MAX_RATE_PER_S),
    WithJsonSchema(
        {"anyOf": [{"const": 0}, {"type": "number", "minimum": 1e-6, "maximum": MAX_RATE_PER_S}]}
    ),
]


class NewLimits(BaseModel):
    """What to set of a device; what is not named stays, and null is the default again."""

    model_config = ConfigDict(extra="forbid", strict=True)
    weight: float | None = Field(None, ge=1 / MAX_WEIGHT, le=MAX_WEIGHT)
    paused: bool | None = None
    min_running: Running | None = None
    max_running: Running | None = None
    rate_per_s: _Rate | None = None
    site: str | None = Field(None, pattern=f"^$|{SITE_PATTERN}")

    def named(self) -> dict[str, Any]:
        """Return what was named, with the default for null."""
        default = answer.DeviceLimits(
            weight=1.0, paused=False, min_running=0, max_running=0, rate_per_s=0.0, site=""
        )
        given = self.model_dump(exclude_unset=True)
        return {
            name: getattr(default, name) if value is None else value
            for name, value in given.items()
        }


@router.get("/v1/devices", summary=sentence(verbs.Devices), responses=problems(401, 403, 422, 503))
async def devices(request: Request, page: Annotated[Page, Query()]) -> answer.Devices:
    """Answer a page of devices; it may be short of `limit`: go on until `next_cursor` is null.

    `q` is an address or its beginning, in any notation, `state` how a device is held, if at all.
    """
    caller(request).needs(READERS)
    gate: Gate = request.app.state.gate
    async with within_limit():
        found, end = await _meant(gate, page)
    return answer.Devices(devices=[*map(answer.device, found)], next_cursor=end)


async def _meant(gate: Gate, page: Page) -> tuple[list[Device], str | None]:
    """Return up to `limit` devices that are meant, and where to go on."""
    with suppress(InvalidMac):
        # A whole address finds its device also when nothing of it is pending.
        named = await _read(gate, [canonical(page.q)]) if page.q else []
        if named:
            return [device for device in named if _is_in(device, page.state)], None
    begin = _digits(page.q)
    first = offset = offset_of(page.cursor)
    found: list[Device] = []
    looks = _LOOKS
    while looks > 0 and offset < first + _NAMES and len(found) < page.limit:
        most = min(page.limit - len(found), looks)
        asked = _AT_ONCE if begin else most
        listed = await gate.run(verbs.Devices(offset, asked))
        meant = [at for at, (mac, _) in enumerate(listed) if _digits(mac).startswith(begin)]
        chosen = meant[:most]
        looks -= len(chosen)
        devices = await _read(gate, [listed[at][0] for at in chosen])
        found += [device for device in devices if _is_in(device, page.state)]
        if len(chosen) < len(meant):
            offset += chosen[-1] + 1
        elif len(listed) < asked:
            return found, None
        else:
            offset += asked
    return found, cursor_of(offset)


async def _read(gate: Gate, macs: Sequence[str]) -> list[Device]:
    if not macs:
        return []
    read = await gate.run_many([device_verb(mac, gate.client.settings) for mac in macs])
    for device in read:
        if isinstance(device, FairlaneError):
            raise device
    return read


def _digits(mac: str) -> str:
    """Return what is left of an address, or of its beginning, without its notation."""
    return re.sub("[:.-]", "", mac.strip().lower())


def _is_in(device: Device, state: State | None) -> bool:
    """Whether a device can go in some lane, or is held in that way in one."""
    if state is None:
        return True
    if state == "paused":
        return device.limits.paused
    if state == "going":
        return any(lane.rank >= 0 for lane in device.lanes)
    return any(lane.held_by == state for lane in device.lanes)


@router.get(
    "/v1/devices/{mac}",
    summary=sentence(verbs.InspectDevice),
    responses=problems(401, 403, 422, 503),
)
async def inspect_device(request: Request, response: Response, mac: MacInPath) -> answer.Device:
    """Answer a device; one that was never heard of has nothing pending.

    The ETag is that of its limits: send it as If-Match to change what you have seen, and no other.
    """
    reader = caller(request).needs((*READERS, "device"))
    reader.owns(mac)
    gate: Gate = request.app.state.gate
    found = await gate.run(device_verb(mac, gate.client.settings))
    response.headers["ETag"] = f'"{found.limits.version}"'
    return answer.device(found)


@router.patch(
    "/v1/devices/{mac}",
    summary=sentence(verbs.Configure),
    responses=problems(401, 403, 408, 412, 413, 415, 422, 503),
)
async def configure(
    request: Request,
    response: Response,
    mac: MacInPath,
    new: NewLimits,
    if_match: Annotated[str, Header()] = "",
) -> answer.DeviceLimits:
    """Set what is named; answer all that is in force. With If-Match, only what was seen."""
    caller(request).needs(OPERATORS)
    gate: Gate = request.app.state.gate
    verb = verbs.Configure(mac, **new.named(), if_versions=_versions(if_match))
    found = await gate.run(verb)
    response.headers["ETag"] = f'"{found.version}"'
    return answer.limits(found)


def _versions(if_match: str) -> tuple[str, ...]:
    """Return the versions of an If-Match; none for what matches anything."""
    if if_match.strip() in ("", "*"):
        return ()
    # A weak one never matches, and what is no version is that of no device.
    found = (tag.strip() for tag in if_match.split(","))
    return tuple(tag.strip('"') for tag in found if _VERSION.fullmatch(tag)) or ("none",)
