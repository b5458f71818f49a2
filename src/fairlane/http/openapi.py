"""The OpenAPI of what pydantic does not describe: bodies that msgspec decodes, and problems.

The rule: a schema says what is accepted, so that whoever generates a client, or a test, from it is
not refused for its form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
from fastapi import Path
from pydantic import Field

from fairlane.http.problem import MEDIA_TYPE

_EVEN: Final = "[0-9A-Fa-f][02468ACEace]"
_PAIR: Final = "[0-9A-Fa-f]{2}"
MAC_PATTERN: Final = (
    # Not all zero.
    f"^(?!00[0:.-]*$)({_EVEN}(:{_PAIR}){{5}}((:{_PAIR}){{2}})?|{_EVEN}(-{_PAIR}){{5}}((-{_PAIR}){{2}})?"
    rf"|{_EVEN}{_PAIR}(\.{_PAIR}{_PAIR}){{2}}(\.{_PAIR}{_PAIR})?"
    f"|{_EVEN}({_PAIR}){{5}}(({_PAIR}){{2}})?)$"
)
TASK_ID_PATTERN: Final = "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
SITE_PATTERN: Final = "^[a-z0-9][a-z0-9_.-]{0,63}$"
CURSOR_PATTERN: Final = "^(o[0-9]{1,9})?$"

# The patterns below are told, not checked: a verb says better what is wrong with what it gets.
Mac = Annotated[str, Field(json_schema_extra={"pattern": MAC_PATTERN})]
TaskId = Annotated[str, Field(json_schema_extra={"pattern": TASK_ID_PATTERN})]
Cursor = Annotated[str, Field(max_length=200, json_schema_extra={"pattern": CURSOR_PATTERN})]
MacInPath = Annotated[str, Path(json_schema_extra={"pattern": MAC_PATTERN})]
TaskIdInPath = Annotated[str, Path(json_schema_extra={"pattern": TASK_ID_PATTERN})]

PROBLEM: Final[Mapping[str, Any]] = {
    "title": "Problem",
    "description": "What went wrong (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "retry_after_seconds": {"type": "integer"},
    },
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route that answers problems with these statuses."""
    return {status: _problem(status) for status in statuses}


def described(
    bodies: Mapping[str, Any],
    answers: Mapping[int, Any],
    statuses: Sequence[int],
    headers: Mapping[str, str] | None = None,
    links: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what FastAPI is told of a route that msgspec decodes.

    `bodies` are its types by media type, `answers` the types of its answers by status.
    """
    content = {media: {"schema": _schema(kind)} for media, kind in bodies.items()}
    responses: dict[int | str, dict[str, Any]] = {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {"application/json": {"schema": _schema(kind)}},
            "links": dict(links or {}),
        }
        for status, kind in answers.items()
    }
    return {
        "responses": {**responses, **problems(*statuses)},
        "openapi_extra": {
            "requestBody": {"required": True, "content": content},
            "parameters": [_header(name, about) for name, about in (headers or {}).items()],
        },
    }


def _header(name: str, about: str) -> dict[str, Any]:
    text = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}
    return {"name": name, "in": "header", "description": about, "schema": text}


def _problem(status: int) -> dict[str, Any]:
    phrase = HTTPStatus(status).phrase
    return {"description": phrase, "content": {MEDIA_TYPE: {"schema": dict(PROBLEM)}}}


def _schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type in one piece."""
    if isinstance(kind, dict):
        return kind
    (schema,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    whole = _inlined(schema, parts)
    assert isinstance(whole, dict)
    return whole


def _inlined(schema: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(item, parts) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(parts[schema["$ref"]], parts)
    return {name: _inlined(value, parts) for name, value in schema.items()}


def guarded(schema: dict[str, Any], public: Sequence[str]) -> dict[str, Any]:
    """Return a description that says of every path but `public` ones that it takes a token."""
    schema.setdefault("components", {})["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    }
    for path, methods in schema["paths"].items():
        for operation in methods.values() if path not in public else ():
            operation["security"] = [{"token": []}]
            answers = operation["responses"]
            for status in (401, 403, 429, 503):
                answers.setdefault(str(status), _problem(status))
    return schema


def with_task_types(schema: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return a description of the service that names the task types of its store."""
    whole = deepcopy(dict(schema))
    for path in ("/v1/tasks", "/v1/tasks:batch"):
        body = whole["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        task = body.get("items", body)
        task["properties"]["task_type"] = {"type": "string", "enum": list(names)}
    return whole
