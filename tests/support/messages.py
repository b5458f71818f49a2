"""What may stand in a Celery queue on Redis that no worker of fairlane's can run.

The rule: each spoils one thing of a message that would run. A list in the broker is open to anybody
who can write there, so anything can stand in it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

_TASK: Final = "execute_text_sensitive_job"
_BODY: Final = b'[["x", 1], {}, {}]'


def message(
    body: bytes = _BODY,
    *,
    headers: Mapping[str, Any] | None = None,
    properties: Mapping[str, Any] | None = None,
    content_type: str = "application/json",
) -> bytes:
    """Return a message as kombu writes it, with what is given in place of what is usual."""
    usual = {"lang": "py", "task": _TASK, "id": "x.1", "root_id": "x.1"}
    said = {
        "correlation_id": "x.1",
        "delivery_mode": 2,
        "delivery_tag": "a tag",
        "priority": 0,
        "body_encoding": "base64",
        "delivery_info": {"exchange": "", "routing_key": "sensitive.text"},
    }
    item = {
        "body": base64.b64encode(body).decode(),
        "content-encoding": "utf-8",
        "content-type": content_type,
        "headers": usual | dict(headers or {}),
        "properties": said | dict(properties or {}),
    }
    return json.dumps(item).encode()


#: What the item is, and the item. None may be run, and none may harm the worker.
UNREADABLE: Final[Mapping[str, bytes]] = {
    "bytes that are no text": b"\xff\xfe garbage",
    "text that is no JSON": b"garbage",
    "nothing": b"",
    "a number": b"7",
    "null": b"null",
    "a list": b"[]",
    "100,000 levels": b"[" * 100_000,
    "no properties": b"{}",
    "no delivery tag": b'{"properties": {}}',
    "null properties": b'{"properties": null}',
    "a tag that is a list": message(properties={"delivery_tag": [1]}),
    "an unknown encoding of the body": message(properties={"body_encoding": "rot13"}),
    "a body that is a number": message().replace(b'"body": "', b'"body": 5, "": "'),
    "headers that are a text": message().replace(b'"headers": {', b'"headers": "x", "": {'),
    "headers that are a list": message().replace(b'"headers": {', b'"headers": [], "": {'),
    "a pickle": message(content_type="application/x-python-serialize"),
    "an unknown content type": message(content_type="application/x-nonsense"),
    "a body that is cut": message(b'[["x", 1], {}'),
    "a body that is no UTF-8": message(b"\xff["),
    "an empty body": message(b""),
    "a body that is an object": message(b'{"a": 1}'),
    "a body that is null": message(b"null"),
    "a compression that is not": message(headers={"compression": "zlib"}),
    "an unknown compression": message(headers={"compression": "x"}),
    "an unknown task": message(headers={"task": "nobody"}),
    "a task that is a list": message(headers={"task": [1]}),
    "no task": message(headers={"task": None}),
    "an id that is a list": message(headers={"id": [1]}),
    "no id": message(headers={"id": None}),
    "an id that is another": message(headers={"id": "y.1"}),
    "an attempt of 400 digits": message(
        b'[["x", ' + b"9" * 400 + b"], {}, {}]", headers={"id": "x." + "9" * 400}
    ),
    "a task id of 100,000 letters": message(b'[["' + b"x" * 100_000 + b'", 1], {}, {}]'),
    "a task id that is no text": message(b"[[1, 1], {}, {}]", headers={"id": "1.1"}),
    "a negative attempt": message(b'[["x", -1], {}, {}]', headers={"id": "x.-1"}),
    "half an attempt": message(b'[["x", 1.5], {}, {}]'),
    "no arguments": message(b"[[], {}, {}]"),
    "one argument": message(b'[["x"], {}, {}]'),
    "three arguments": message(b'[["x", 1, 2], {}, {}]'),
    "arguments that are null": message(b"[null, null, null]"),
    "an argument with a name": message(b'[["x", 1], {"a": 1}, {}]'),
    "a task that follows": message(b'[["x", 1], {}, {"callbacks": [{"task": "x"}]}]'),
    "callbacks that are a number": message(b'[["x", 1], {}, {"callbacks": 7}]'),
    "a time that is none": message(headers={"expires": "never"}),
    "a time that is a list": message(headers={"expires": [1]}),
    "an attempt for later": message(headers={"eta": "2999-01-01T00:00:00+00:00"}),
    "limits that are texts": message(headers={"timelimit": ["x", {}]}),
    "one limit": message(headers={"timelimit": [1]}),
    "stamps that are numbers": message(headers={"stamped_headers": 7, "stamps": 9}),
    "retries that are a text": message(headers={"retries": "x"}),
    "a delivery_info that is a text": message(properties={"delivery_info": "x"}),
}

#: Odd, but it names an attempt: the store says that there is no such task.
UNKNOWN: Final = message(properties={"delivery_info": None, "priority": "x", "reply_to": 5})
