"""A broken network between each process and the store, and between the worker and its broker.

Every row goes through the same faults: connections that are cut, replies that are lost, each way
in turn that carries nothing for longer than anybody waits, 200 ms of delay, half-open connections.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.clock import Clock, has_lived
from support.eventually import passes
from support.ledger import Judge
from support.node import noded
from support.producer import Producer
from support.proxy import Proxy
from support.stage import Stage, staged_on

QUICK = {"socket_timeout_ms": 2_000}
#: Longer than a socket is waited for, and than a lease of the stage lasts.
SILENT_S = 4.0
FAULTS = "cuts, lost replies, one way dropped, 200 ms, half open"


def cut(proxy: Proxy) -> None:
    for _ in range(10):
        proxy.cut()
        passes(0.2)


def lose_replies(proxy: Proxy) -> None:
    proxy.lose_replies(20)
    proxy.has_lost_all()


def drop_requests(proxy: Proxy) -> None:
    with proxy.drops("requests"):
        passes(SILENT_S)


def drop_replies(proxy: Proxy) -> None:
    with proxy.drops("replies"):
        passes(SILENT_S)


def delay(proxy: Proxy) -> None:
    with proxy.slow(0.2):
        passes(SILENT_S)


def half_open(proxy: Proxy) -> None:
    proxy.abandon()


ALL: tuple[Callable[[Proxy], None], ...] = (
    cut, lose_replies, drop_requests, drop_replies, delay, half_open,
)  # fmt: skip


def row(identity: str, between: str, part: str) -> object:
    fault = pytest.mark.fault(identity, f"{FAULTS}: between {between}", "lost 0; goes on ≤ 20 s")
    return pytest.param(part, marks=fault, id=part)


@pytest.mark.parametrize(
    "part",
    [
        row("N1", "a producer and the store", "producer"),
        row("N2", "a worker and both store and broker", "worker"),
        row("N3", "the dispatcher and both store and broker", "dispatcher"),
        row("N4", "worker and dispatcher and the broker", "broker"),
    ],
)
def test_a_broken_network(judge: Judge, tmp_path: Path, part: str) -> None:
    """A11: a call that is sent again is one task; what was claimed unheard comes back."""
    with (
        noded() as node,
        Proxy(node.broker_url if part == "broker" else node.url, tmp_path) as proxy,
        staged_on(node, **QUICK) as stage,
    ):
        start(stage, part, proxy)
        with Producer(stage, store_url=proxy.url if part == "producer" else "") as producer:
            slowest_s = 0.0
            for fault in ALL:
                producer.goes_on()
                fault(proxy)
                took_s = Clock(stage.system).until_done()
                assert took_s < 20.0, f"{fault.__name__}: {took_s} s until a task was done"
                slowest_s = max(slowest_s, took_s)
            producer.goes_on()
        assert set(producer.errors) <= {"STORE_UNAVAILABLE"}, producer.errors
        assert part == "producer" or not producer.errors
        judge.judge(stage.system, recovery_s=slowest_s, receipts=producer.receipts)
        has_lived(stage.system)


def start(stage: Stage, part: str, proxy: Proxy) -> None:
    """Start a dispatcher and a worker, and beside a worker with a bad network a second one."""
    environ = stage.system.environ
    # Who names his broker as another server than the others do is not let in.
    behind = {"FAIRLANE_STORE_URL": proxy.url, "FAIRLANE_BROKER_URL": proxy.url[:-1] + "1"}
    if part == "broker":
        environ["FAIRLANE_BROKER_URL"] = proxy.url
    for name in ("dispatcher", "worker"):
        if part == name:
            environ.update(behind)
        stage.dispatcher() if name == "dispatcher" else stage.worker()
        if part == name:
            for variable in behind:
                del environ[variable]
    if part == "worker":
        stage.worker("other")
    stage.system.ended(stage.send(2), 60.0)
