"""`celery inspect fairlane_stats`: what a worker knows of fairlane.

The rule: it reads, and answers within what Celery waits for; a store that is away is an answer.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from celery.worker.control import Panel, inspect_command

from fairlane.errors import FairlaneError
from fairlane.verbs import InspectLanes, InspectTotals, InspectWorkers


def install() -> None:
    """Register the command; twice is once."""
    if "fairlane_stats" not in Panel.data:
        inspect_command()(fairlane_stats)


def fairlane_stats(state: Any) -> dict[str, Any]:
    """Tell the worker's row, the lanes and the counts of its store."""
    fairlane = state.app.fairlane
    client = fairlane.client
    try:
        totals, lanes = client.run(InspectTotals()), client.run(InspectLanes())
        workers = client.run(InspectWorkers())
    except FairlaneError as error:
        return {"error": error.code, "detail": str(error)}
    own = [asdict(worker) for worker in workers if worker.worker_id == fairlane.worker_id]
    return {
        "worker": own[0] if own else None,
        "pending": totals.pending,
        "leased": totals.leased,
        "counts": dict(totals.counts),
        "lanes": {lane.name: {"pending": lane.pending, "leased": lane.leased,
                              "slots": lane.slots, "credits": lane.credits} for lane in lanes},
    }  # fmt: skip
