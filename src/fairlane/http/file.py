"""GET /v1/files/{name}: a stored file, as whoever sees its task sees it.

The rule: what somebody sent is given back as what it is by its content, an image or plain text, and
never as anything that a browser would run.
"""

from __future__ import annotations

import io
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Path, Request, Response

from fairlane.errors import FileNotKnown
from fairlane.http.caller import READERS, caller
from fairlane.http.files import Depot, sniff
from fairlane.http.openapi import problems
from fairlane.http.problem import Problem

router = APIRouter(tags=["files"])

_NAME = Path(json_schema_extra={"pattern": "^[0-9a-f]{64}$"})
_BYTES = {"schema": {"type": "string", "format": "binary"}}


@router.get(
    "/v1/files/{name}",
    summary="Read a stored file.",
    response_class=Response,
    responses={
        200: {"content": {"image/*": _BYTES, "text/plain": _BYTES}},
        **problems(401, 403, 404, 503),
    },
)
async def read_file(request: Request, name: Annotated[str, _NAME]) -> Response:
    """Answer the bytes; 404 when the file was never stored here, or was deleted since."""
    caller(request).needs(READERS)
    depot: Depot = request.app.state.depot
    try:
        content = await to_thread.run_sync(depot.store.get, name)
    except FileNotKnown as error:
        raise Problem(404, error.code, str(error)) from None
    except OSError:
        raise Problem(
            503, "FILE_STORE_UNAVAILABLE", "the file cannot be read now", retry_after_s=5
        ) from None
    kind, _, _ = await to_thread.run_sync(sniff, io.BytesIO(content))
    return Response(content, 200, {"Content-Disposition": "inline"}, kind)
