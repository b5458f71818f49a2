"""A store with something in every corner, for whoever looks at it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from fairlane import Client, verbs
from support.store import mac

#: What must stay text wherever it is shown.
HOSTILE: Final = "<script>window.hacked=1;alert(1)</script><img src=x onerror=alert(2)>"


#: A worker that is there.
WORKER: Final = "host:94:nonce"


def worker(
    store: Client,
    worker_id: str = WORKER,
    *,
    slots: int = 4,
    reason: str = "",
    name: str = "text@host",
) -> None:
    """Let a worker report that it serves all lanes, and what it runs."""
    gpus = [{"name": "RTX", "utilisation": 40, "memory": 71}]
    report = {"hostname": "host", "name": name, "cpu": "12.5", "memory": "70", "reason": reason,
              "gpus": json.dumps(gpus)}  # fmt: skip
    beat = verbs.Heartbeat(
        worker_id, lanes=["ocr", "text"], slots=slots, gpu=True, active=[], report=report
    )
    store.run(beat)


def waiting(store: Client, devices: int, tasks: int = 1) -> None:
    """Let devices wait, each with some texts."""
    items = [
        (mac(number), "text", {"n": at}) for number in range(1, devices + 1) for at in range(tasks)
    ]
    for at in range(0, len(items), 1_000):
        store.enqueue_many(items[at : at + 1_000])


def running(store: Client, device: int, data: Any = None) -> str:
    """Let a task of a device run; return its id."""
    task_id = store.enqueue(mac(device), "ocr", data or {}).task_id
    (leased,) = store.run(verbs.Claim("ocr", 1)).leased
    store.run(verbs.Start(task_id, leased.attempt, WORKER, "run"))
    return task_id


def done(store: Client, device: int, data: Any, result: Any) -> str:
    """Let a task of a device be done; return its id."""
    task_id = running(store, device, data)
    attempt = store.task(task_id).attempt
    store.run(verbs.Finish(task_id, attempt, result))
    return task_id


def dead(store: Client, count: int, causes: Sequence[str], device: int = 900) -> list[str]:
    """Let tasks of a device die, each of the next cause; return their ids."""
    ids = []
    for at in range(count):
        task_id = store.enqueue(mac(device), "text", {"at": at, "said": HOSTILE}).task_id
        (leased,) = store.run(verbs.Claim("text", 1)).leased
        assert leased.task_id == task_id
        store.run(verbs.Start(task_id, leased.attempt, WORKER, "run"))
        cause = causes[at % len(causes)]
        store.run(verbs.Fail(task_id, leased.attempt, cause, f"Traceback: {HOSTILE}"))
        ids.append(task_id)
    return ids
