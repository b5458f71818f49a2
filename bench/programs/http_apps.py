"""The three ways to take a task over HTTP that `service.py` compares, each served by uvicorn.

    python http_apps.py bare|plain|fairlane FD

The rule: all three run the same verb through the same client, in one process with one loop; `bare`
is the least that can be written, `plain` what most would write.
"""

from __future__ import annotations

import socket
import sys
from typing import Any

import msgspec
from fastapi import FastAPI
from pydantic import BaseModel

from fairlane import AsyncClient, Receipt, Settings, verbs
from fairlane.http import create_app
from fairlane.http.serve import run


class NewTask(msgspec.Struct, forbid_unknown_fields=True):
    """A task, for msgspec."""

    mac: str
    task_type: str
    data: dict[str, Any]


class PlainTask(BaseModel):
    """A task, for pydantic."""

    mac: str
    task_type: str
    data: dict[str, Any]


def bare() -> Any:
    """Return an ASGI application that does nothing else."""
    client = AsyncClient(Settings.from_env())
    decode, encode = msgspec.json.Decoder(NewTask).decode, msgspec.json.Encoder().encode

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        message = await receive()
        raw = message["body"]
        while message.get("more_body"):
            message = await receive()
            raw += message["body"]
        task = decode(raw)
        receipt = await client.run(verbs.Enqueue(task.mac, task.task_type, task.data))
        assert isinstance(receipt, Receipt)
        told = encode(receipt)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(told))]
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        await send({"type": "http.response.body", "body": told})

    return app


def plain() -> Any:
    """Return FastAPI as its tutorial has it."""
    client = AsyncClient(Settings.from_env())
    app = FastAPI()

    @app.post("/v1/tasks", status_code=202)
    async def enqueue(task: PlainTask) -> dict[str, Any]:
        receipt = await client.enqueue(task.mac, task.task_type, task.data)
        return msgspec.structs.asdict(receipt)

    return app


def fairlane() -> Any:
    """Return the service, which sees to who calls; the others do not."""
    return create_app(Settings.from_env())


if __name__ == "__main__":
    run(globals()[sys.argv[1]](), socket.socket(fileno=int(sys.argv[2])))
