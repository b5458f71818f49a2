"""One workload under one policy, from its name to its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlane.sim.engine import Engine, Progress
from fairlane.sim.policies import QUEUES, PlainQueues, Policy
from fairlane.sim.record import Record
from fairlane.sim.store import SimulatedStore
from fairlane.sim.workload import InvalidWorkload, Workload

#: What each policy is, in English and in Chinese: the store's two, and two plain queues.
POLICIES: Final[Mapping[str, tuple[str, str]]] = {
    "fair": ("fairlane's own: start-time fair queueing", "fairlane 默认：起始时间公平排队"),
    "aging": ("the requirement document's aging", "需求文档的老化策略"),
    "fifo": ("one queue, oldest task first", "单一队列，先到先服务"),
    "rr": ("one queue per device, round robin", "每台设备一个队列，轮询"),
}


def simulate(workload: Workload, policy: str, progress: Progress = lambda done, of: None) -> Record:
    """Run a workload under a policy and return what happened.

    `progress` is told how many tasks are done, and of how many. Raises InvalidWorkload for an
    unknown policy, StoreUnavailable without the embedded store.
    """
    if policy not in POLICIES:
        raise InvalidWorkload(f"policy: {policy!r} is unknown; use {', '.join(POLICIES)}")
    if policy in QUEUES:
        settings = workload.settings_for("fair")
        queues: Policy = PlainQueues(QUEUES[policy], settings)
    else:
        settings = workload.settings_for(policy)
        queues = SimulatedStore(settings)
    with queues:
        return Engine(workload, queues, settings, progress).run()
