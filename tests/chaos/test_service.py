"""The HTTP service while its store is away, and while many watch: whole answers, in time."""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import pytest

from fairlane.ids import new_task_id
from support.clock import Clock, has_lived
from support.eventually import eventually, passes
from support.ledger import Judge
from support.node import noded
from support.service import served
from support.stage import staged, staged_on
from support.store import mac

#: How long the store is away, and how many senders there are meanwhile.
AWAY_S, SENDERS = 60.0, 8
CLIENTS, WATCHED_S = 50, 200.0


@dataclass
class Senders:
    """Threads that send one new task after the other; what was answered, and how fast."""

    http: httpx.Client
    data: dict[str, object]
    answers: list[tuple[int, float, str]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def send(self, number: int) -> None:
        """Send until told to stop."""
        while not self.stopped.wait(0.05):
            task_id = new_task_id()
            task = {"mac": mac(number), "task_type": "text", "data": self.data, "task_id": task_id}
            began_s = time.monotonic()
            answer = self.http.post("/v1/tasks", json=task)
            self.answers.append((answer.status_code, time.monotonic() - began_s, task_id))

    def accepted(self) -> list[str]:
        """Return the ids that were answered 202."""
        return [task_id for status, _, task_id in list(self.answers) if status == 202]


@pytest.mark.timeout(300)
@pytest.mark.fault(
    "H1",
    f"stop the store for {AWAY_S:.0f} s while {SENDERS} senders send over HTTP",
    "only 202 and 503; p99 of the 503s < 2 s; every 202 is done when it is back",
)
def test_the_store_is_away_for_a_minute(judge: Judge, tmp_path: Path) -> None:
    """A12: no hang, no half write, and it goes on by itself."""
    with noded() as node, staged_on(node) as stage, served(node.url, tmp_path) as http:
        stage.worker("one")
        stage.dispatcher()
        stage.system.ended(stage.send(2), 60.0)
        senders = Senders(http, stage.noting())
        threads = [threading.Thread(target=senders.send, args=(at,)) for at in range(SENDERS)]
        for thread in threads:
            thread.start()
        try:
            eventually(lambda: len(senders.accepted()) > 50, 30.0)
            node.stop()
            passes(AWAY_S)
            before = len(senders.accepted())
            node.start()
            took_s = Clock(stage.system).until_done()
            eventually(lambda: len(senders.accepted()) > before + 50, 30.0)
        finally:
            senders.stopped.set()
            for thread in threads:
                thread.join(30.0)
        assert {status for status, _, _ in senders.answers} == {202, 503}
        late = sorted(seconds for status, seconds, _ in senders.answers if status == 503)
        p99_s = statistics.quantiles(late, n=100)[98]
        assert p99_s < 2.0
        judge.judge(stage.system, recovery_s=took_s, receipts=senders.accepted())
        judge.note("answers 503", f"{len(late):,}, p50 {statistics.median(late):.2f} s, "
                   f"p99 {p99_s:.2f} s, longest {late[-1]:.2f} s")  # fmt: skip
        has_lived(stage.system)


@pytest.mark.timeout(500)
@pytest.mark.fault(
    "H2",
    f"{CLIENTS} clients watch /v1/events for {WATCHED_S:.0f} s each while tasks run",
    "each is told to the end; the service's memory stays flat",
)
def test_many_watch_for_long(judge: Judge, tmp_path: Path) -> None:
    with staged() as stage, served(stage.system.settings.store_url, tmp_path) as http:
        stage.worker("one")
        stage.dispatcher()
        (api,) = (
            process
            for process in psutil.Process().children(recursive=True)
            if process.cmdline()[-2:] == ["api", "--port=0"]
        )
        senders = Senders(http, stage.noting())
        sender = threading.Thread(target=senders.send, args=(1,))
        sender.start()
        memory: list[int] = []
        try:
            heard = asyncio.run(_watch(http, api, memory))
        finally:
            senders.stopped.set()
            sender.join(30.0)
        assert len(heard) == CLIENTS
        assert min(heard) > WATCHED_S / 2, "a delta at least every other second"
        # The first third fills what is kept; from then on nothing may be added.
        settled = memory[len(memory) // 3 :]
        grown = statistics.mean(settled[-10:]) - statistics.mean(settled[:10])
        assert grown < 4 * 2**20, f"{grown / 2**20:.1f} MiB more: {memory}"
        judge.judge(stage.system, receipts=senders.accepted())
        judge.note("memory", f"{settled[0] / 2**20:.1f} MiB, {grown / 2**20:+.1f} in the end")
        judge.note("messages", f"{min(heard)} to {max(heard)} a client")


async def _watch(http: httpx.Client, api: psutil.Process, memory: list[int]) -> list[int]:
    """Return how many messages each client heard; note the service's memory each second."""
    limits = httpx.Limits(max_connections=CLIENTS)
    timeout = httpx.Timeout(30.0)
    async with httpx.AsyncClient(
        base_url=http.base_url, headers=http.headers, limits=limits, timeout=timeout
    ) as client:

        async def listen() -> int:
            heard = 0
            end_s = time.monotonic() + WATCHED_S
            async with client.stream("GET", "/v1/events") as answer:
                assert answer.status_code == 200
                async for line in answer.aiter_lines():
                    heard += line.startswith("data:")
                    if time.monotonic() > end_s:
                        break
            return heard

        async def weigh() -> None:
            while True:
                memory.append(api.memory_info().rss)
                await asyncio.sleep(1.0)

        scale = asyncio.create_task(weigh())
        heard = await asyncio.gather(*(listen() for _ in range(CLIENTS)))
        scale.cancel()
        return heard
