"""Flower shows our workers and our tasks: the real one, from PyPI."""

from __future__ import annotations

import sys
from typing import Any

import httpx

from support.eventually import eventually
from support.ports import free_ports
from support.store import mac
from support.system import DISPATCH, TEXT, running


def test_flower_shows_workers_and_tasks() -> None:
    with running() as system:
        system.worker("shown", TEXT, DISPATCH, arguments=["-E"])
        (port,) = free_ports(1)
        system.start(
            "flower", sys.executable, "-m", "celery", "-A", "fairlane.celery", "flower",
            f"--port={port}", "--address=127.0.0.1", FLOWER_UNAUTHENTICATED_API="true",
        )  # fmt: skip

        def asked(path: str) -> Any:
            try:
                answer = httpx.get(f"http://127.0.0.1:{port}{path}", timeout=10.0)
            except httpx.TransportError:
                return None
            return answer.json() if answer.status_code == 200 else None

        eventually(lambda: any(asked("/api/workers?refresh=1") or {}), 60.0, 0.5)
        done = system.do(mac(1))
        system.ended([done])
        message_id = f"{done}.1"

        def is_shown() -> bool:
            told = (asked("/api/tasks") or {}).get(message_id, {})
            return (told.get("name"), told.get("state")) == (
                "execute_text_sensitive_job",
                "SUCCESS",
            )

        eventually(is_shown, 30.0, 0.5)
