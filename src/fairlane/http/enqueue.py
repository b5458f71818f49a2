"""POST /v1/tasks and /v1/tasks:batch: the way in.

The rule: these are where devices are many, so nothing of FastAPI runs on their way: they are
Starlette routes that msgspec decodes and encodes, and stand in the OpenAPI like the others. What is
accepted answers 202 the first time and 200 when it was known.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from fairlane import tracing, verbs
from fairlane.errors import FairlaneError, FileNotKnown, InvalidInput, StoreError
from fairlane.http import body
from fairlane.http.answer import when
from fairlane.http.caller import SENDERS, Caller, caller, forbidden
from fairlane.http.gate import Gate
from fairlane.http.openapi import MAC_PATTERN, SITE_PATTERN, TASK_ID_PATTERN, described
from fairlane.http.problem import Problem, problem_of, problem_of_refusal
from fairlane.http.route import BareRoute
from fairlane.http.sentence import sentence
from fairlane.logs import TASK_ID
from fairlane.model import Receipt, Refusal, TaskState
from fairlane.settings import Settings
from fairlane.verbs.accept import MAX_ITEMS, MAX_MS

BATCH_BYTES: Final = 8 * 1024 * 1024
NDJSON: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl")
#: The envelope, and what the escapes of JSON add to a payload.
_ENVELOPE_BYTES: Final = 4 * 1024
_ESCAPED: Final = 3
#: A thousand tasks of a thousand devices would keep the store for over 20 ms.
_AT_ONCE: Final = 100
_encode: Final = msgspec.json.Encoder().encode

_Seconds = Annotated[float, Meta(gt=0, le=MAX_MS / 1000)]


class NewTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task to be stored."""

    # The patterns are for those who read the schema: the verb says better what is wrong.
    mac: Annotated[
        str,
        Meta(
            description="EUI-48 or EUI-64, in any usual notation",
            extra_json_schema={"pattern": MAC_PATTERN},
        ),
    ]
    task_type: str
    data: Annotated[dict[str, Any], Meta(description="what the handler gets, as it is here")]
    task_id: Annotated[str, Meta(extra_json_schema={"pattern": TASK_ID_PATTERN})] | None = None
    ttl_seconds: Annotated[_Seconds | None, Meta(description="how long it may wait")] = None
    cost_seconds: Annotated[_Seconds | None, Meta(description="how long it will run")] = None
    site: Annotated[str, Meta(extra_json_schema={"pattern": SITE_PATTERN})] | None = None


class NewItem(NewTask, frozen=True, forbid_unknown_fields=True):
    """A task of a batch, where a header cannot name the key of each."""

    idempotency_key: Annotated[str, Meta(min_length=1, max_length=255)] | None = None


_decode_task: Final = msgspec.json.Decoder(NewTask).decode
_Items = Annotated[list[NewItem], Meta(min_length=1, max_length=MAX_ITEMS)]


class Accepted(msgspec.Struct, frozen=True):
    """A stored task; `known` when an earlier call had stored it.

    `state` is null when an idempotency key outlived the record of its task, which has ended.
    """

    task_id: str
    mac: str
    state: TaskState | None
    created_at: str | None
    pending: int
    known: bool


#: A verdict is what the item had been answered on its own: an Accepted or a problem.
VERDICTS: Final = {
    "title": "Verdicts",
    "type": "object",
    "required": ["verdicts"],
    "properties": {
        "verdicts": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["status"],
                "properties": {"status": {"type": "integer"}},
            },
        }
    },
}


async def enqueue(request: Request) -> Response:
    """Store one task."""
    receipt = await store(request.app.state.gate, caller(request), request.scope, request.receive)
    location = f"{request.scope.get('root_path', '')}/v1/tasks/{receipt.task_id}"
    return Response(*answer_of(receipt), {"Location": location}, "application/json")


async def store(gate: Gate, sender: Caller, scope: Scope, receive: Receive) -> Receipt:
    """Store the task of a request. Raises Problem, also for a refusal; FairlaneError."""
    sender.needs(SENDERS)
    body.check_type(scope, body.JSON)
    most = _ESCAPED * gate.client.settings.max_payload_bytes + _ENVELOPE_BYTES
    raw = await body.read(scope, receive, most)
    key = body.header(scope, b"idempotency-key")
    verb = _verb_in(raw, sender, key, _traceparent(scope))
    TASK_ID.set(verb.task_id)
    verdict = await gate.run(verb)
    if isinstance(verdict, Refusal):
        # Only now: the first call of a process is what agrees with the store.
        raise _refused(verdict, gate.client.settings)
    return verdict


def answer_of(receipt: Receipt) -> tuple[bytes, int]:
    """Return the body and the status that tell of a stored task."""
    return _encode(_accepted(receipt)), 200 if receipt.known else 202


async def enqueue_many(request: Request) -> Response:
    """Store many tasks."""
    sender = caller(request).needs(SENDERS)
    gate: Gate = request.app.state.gate
    if body.header(request.scope, b"idempotency-key") is not None:
        raise Problem(422, "INVALID_REQUEST", "give each item of a batch its own idempotency_key")
    kind = body.check_type(request.scope, body.JSON + NDJSON)
    raw = await body.read(request.scope, request.receive, BATCH_BYTES)
    items = _items(raw, is_lines=kind in NDJSON)
    if not gate.client.is_open:
        await gate.ask(gate.client.ping())
    trace = _traceparent(request.scope)
    verdicts = [_verb_or_problem(item, sender, gate.client.settings, trace) for item in items]
    good = [verdict for verdict in verdicts if isinstance(verdict, verbs.Enqueue)]
    stored = iter(await _stored(gate, good))
    told = [
        _told(next(stored) if isinstance(verdict, verbs.Enqueue) else verdict, gate.client.settings)
        for verdict in verdicts
    ]
    return Response(_encode({"verdicts": told}), media_type="application/json")


ROUTES: Final = (
    BareRoute(
        "/v1/tasks",
        enqueue,
        methods=["POST"],
        summary=sentence(verbs.Enqueue),
        status_code=202,
        response_class=Response,
        **described(
            {"application/json": NewTask},
            {200: Accepted, 202: Accepted},
            (401, 403, 408, 409, 413, 415, 422, 429, 503),
            links={
                name: {"operationId": name, "parameters": {"task_id": "$response.body#/task_id"}}
                for name in ("inspect_task", "cancel")
            },
            headers={"Idempotency-Key": "the same key with the same body is the same task"},
        ),
    ),
    BareRoute(
        "/v1/tasks:batch",
        enqueue_many,
        methods=["POST"],
        summary=sentence(verbs.EnqueueMany),
        response_class=Response,
        **described(
            {
                "application/json": Annotated[
                    list[NewItem], Meta(min_length=1, max_length=MAX_ITEMS)
                ]
            },
            {200: VERDICTS},
            (401, 403, 408, 413, 415, 422, 503),
        ),
    ),
)


def _traceparent(scope: Scope) -> str | None:
    """Return the trace context of the request: its span's if it has one, else what came with it."""
    open_here = tracing.current() if tracing.is_on() else ""
    return open_here or body.header(scope, b"traceparent")


def _verb_in(raw: bytes, sender: Caller, key: str | None, trace: str | None) -> verbs.Enqueue:
    """Return the verb of a body. Raises a 422 for what is no task in strict JSON; as `_verb_of`."""
    try:
        task = _decode_task(raw)
    except (msgspec.DecodeError, RecursionError):
        # The slow way says better what is wrong.
        task = body.shaped(body.strict(raw), NewTask)
    verb = _verb_of(task, sender, key, trace)
    if b"\\" in raw or raw.count(b":") != _colons(task, verb.payload):
        body.strict(raw)
    return verb


def _colons(task: NewTask, payload: bytes) -> int:
    """Return how many colons a body of this task has, if no key stands twice in it.

    A field that is given as null has one more; a body with escapes can have any number.
    """
    count = 3 + payload.count(b":") + task.mac.count(":") + task.task_type.count(":")
    if task.task_id is not None:
        count += 1 + task.task_id.count(":")
    if task.site is not None:
        count += 1 + task.site.count(":")
    return count + (task.ttl_seconds is not None) + (task.cost_seconds is not None)


def _verb_of(task: NewTask, sender: Caller, key: str | None, trace: str | None) -> verbs.Enqueue:
    """Return the verb of a task. Raises InvalidInput, and a 403 for another's device or site."""
    sender.owns(task.mac)
    site = task.site
    if sender.role == "device" and (
        task.cost_seconds is not None or site not in (None, sender.site)
    ):
        raise forbidden("a device may not say what its tasks cost, nor which site it is in")
    if sender.site:
        if site not in (None, sender.site):
            raise forbidden(f"this caller may send for site {sender.site} only")
        site = sender.site
    return verbs.Enqueue(
        task.mac,
        task.task_type,
        task.data,
        task_id=task.task_id,
        ttl_ms=_milliseconds(task.ttl_seconds),
        cost_ms=_milliseconds(task.cost_seconds),
        site=site,
        idempotency_key=key,
        caller="" if key is None else sender.scope,
        file=task.data.get("file"),
        traceparent=trace,
    )


def _verb_or_problem(
    item: Any, sender: Caller, settings: Settings, trace: str | None
) -> verbs.Enqueue | Problem:
    try:
        task = body.shaped(item, NewItem)
        verb = _verb_of(task, sender, task.idempotency_key, trace)
        # What only the store's settings can tell, told before anything is sent.
        verb.args(settings)
    except (InvalidInput, FileNotKnown) as error:
        return problem_of(error)
    except Problem as problem:
        return problem
    return verb


def _items(raw: bytes, *, is_lines: bool) -> list[Any]:
    """Return the items of a batch. Raises a 422 for no list of 1 to 1,000 of them."""
    if is_lines:
        items = [body.strict(line) for line in _lines(raw)]
    else:
        items = body.strict(raw)
        if not isinstance(items, list):
            raise Problem(422, "INVALID_REQUEST", "body: send a JSON array of tasks, or NDJSON")
    if not 0 < len(items) <= MAX_ITEMS:
        raise Problem(
            422, "INVALID_REQUEST", f"body: {len(items)} tasks; send 1 to {MAX_ITEMS} at a time"
        )
    return items


def _lines(raw: bytes) -> Iterator[bytes]:
    lines = [line for line in raw.split(b"\n") if line.strip()]
    if len(lines) > MAX_ITEMS:
        raise Problem(422, "INVALID_REQUEST", f"body: {len(lines)} lines; send 1 to {MAX_ITEMS}")
    return iter(lines)


async def _stored(gate: Gate, tasks: list[verbs.Enqueue]) -> list[Any]:
    """Return what became of each task: a receipt, a refusal, or an error of the store.

    Raises StoreError when nothing was stored at all.
    """
    done: list[Any] = []
    for part in _parts(tasks):
        try:
            if _goes_alone(part[0]):
                done += await gate.run_many(part)
            else:
                done += await gate.run(verbs.EnqueueMany(part))
        except StoreError as error:
            if not done:
                raise
            done += [error] * (len(tasks) - len(done))
            break
    return done


def _parts(tasks: list[verbs.Enqueue]) -> Iterator[list[verbs.Enqueue]]:
    """Give the tasks in their order, so many at once; those that go alone apart."""
    for _, alike in groupby(tasks, key=_goes_alone):
        while part := list(islice(alike, _AT_ONCE)):
            yield part


def _goes_alone(task: verbs.Enqueue) -> bool:
    """Whether a task has what only its own verb takes."""
    return bool(task.file or task.traceparent)


def _told(verdict: Any, settings: Settings) -> Any:
    """Return what a batch tells of one of its items, with the status that it had on its own."""
    if isinstance(verdict, Receipt):
        status = 200 if verdict.known else 202
        return {"status": status, **msgspec.structs.asdict(_accepted(verdict))}
    if isinstance(verdict, Refusal):
        verdict = _refused(verdict, settings)
    elif isinstance(verdict, FairlaneError):
        verdict = problem_of(verdict)
    assert isinstance(verdict, Problem)
    return verdict.told()


def _accepted(receipt: Receipt) -> Accepted:
    return Accepted(
        receipt.task_id,
        receipt.mac,
        receipt.state,
        when(receipt.created_at_ms),
        receipt.pending,
        receipt.known,
    )


def _refused(refusal: Refusal, settings: Settings) -> Problem:
    return problem_of_refusal(refusal, refuses_all=settings.admission == "system")


def _milliseconds(seconds: float | None) -> int | None:
    # A positive time never becomes none at all.
    return None if seconds is None else max(1, round(seconds * 1000))
