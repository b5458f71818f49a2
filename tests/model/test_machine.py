"""The stateful proof: any program of all verbs keeps every promise, under all configurations.

The rule: 300 programs of 50 steps in `make test`, spread over the configurations, on Valkey, and a
fifth of that on Redis; ten times as many of both in `make chaos` (tests/chaos/test_machine.py). A
failure prints the shortest program that fails.
"""

from __future__ import annotations

import logging
from typing import Any

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test

from model.machine_more import Machine
from support.servers import Server

#: Both policies and both presets, each with both orders of a queue.
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "fair": {"policy": "fair"},
    "aging": {"policy": "aging"},
    "fair-lifo-system": {"policy": "fair", "order": "lifo", "admission": "system"},
    "seed": {"preset": "seed"},
    "seed-fair": {"preset": "seed", "policy": "fair", "order": "fifo", "admission": "fair"},
    "aging-sites": {"policy": "aging", "max_per_site_pending": 7},
}
EXAMPLES = 300
STEPS = 50


def share_of(server: Server, examples: int) -> int:
    """Return how many programs a server has: the same scripts need fewer on the second."""
    return examples if server.name == "valkey9" else examples // 5


def prove(
    server: Server,
    name: str,
    examples: int,
    share: int = len(CONFIGURATIONS),
    *,
    shrinks: bool = True,
) -> None:
    """Run programs under a configuration, a `share`-th of `examples`; a failure is shrunk."""
    phases = [phase for phase in hypothesis.Phase if shrinks or phase is hypothesis.Phase.generate]

    class Proof(Machine):
        def __init__(self) -> None:
            super().__init__(server, **CONFIGURATIONS[name])

    run_state_machine_as_test(
        Proof,
        settings=hypothesis.settings(
            deadline=None,
            max_examples=examples // share,
            phases=phases,
            # Else it looks for twice as many programs after the first that fails.
            report_multiple_bugs=False,
            stateful_step_count=STEPS,
            suppress_health_check=list(hypothesis.HealthCheck),
        ),
    )


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", list(CONFIGURATIONS))
def test_any_program_keeps_every_promise(
    server: Server, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "fairlane.store")  # the tests' servers persist nothing
    prove(server, name, share_of(server, EXAMPLES))
