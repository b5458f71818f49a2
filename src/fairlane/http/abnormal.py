"""POST /decter: abnormal data, for another service to read.

The rule: it is bounded, short-lived, and outside the promise that nothing is lost: what is sent
twice is stored twice, and the oldest makes room.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairlane import verbs
from fairlane.http import body
from fairlane.http.caller import SENDERS, caller
from fairlane.http.gate import Gate
from fairlane.http.openapi import described
from fairlane.http.problem import Problem
from fairlane.http.route import BareRoute
from fairlane.http.sentence import sentence
from fairlane.verbs.bounds import MOST

#: A device tells of itself; what is abnormal, others tell.
_REPORTERS: Final = tuple(role for role in SENDERS if role != "device")
_RECORD: Final = {"type": "object"}
_BODY: Final = {
    "anyOf": [_RECORD, {"type": "array", "items": _RECORD, "minItems": 1, "maxItems": MOST}]
}


class Reported(msgspec.Struct, frozen=True):
    """How many records are kept now, and how many made room for these."""

    kept: int
    dropped: int


async def report_abnormal(request: Request) -> Response:
    """Store a record, or a list of them."""
    caller(request).needs(_REPORTERS)
    body.check_type(request.scope, body.JSON)
    sent: Any = body.strict(await body.read(request.scope, request.receive, body.SMALL_BYTES))
    records = sent if isinstance(sent, list) else [sent]
    if not 0 < len(records) <= MOST:
        raise Problem(422, "INVALID_REQUEST", f"body: {len(records)} records; send 1 to {MOST}")
    gate: Gate = request.app.state.gate
    kept, dropped = await gate.run(verbs.ReportAbnormal(records))
    return Response(msgspec.json.encode(Reported(kept, dropped)), 202, None, "application/json")


ROUTES: Final = (
    BareRoute(
        "/decter",
        report_abnormal,
        methods=["POST"],
        tags=["abnormal data"],
        summary=sentence(verbs.ReportAbnormal),
        status_code=202,
        response_class=Response,
        **described(
            {"application/json": _BODY}, {202: Reported}, (401, 403, 408, 413, 415, 422, 503)
        ),
    ),
)
