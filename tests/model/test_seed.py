"""The `seed` preset serves, scores, batches, defers and refuses as the document's formulas say.

The rule: random programs find what nobody thought of (`lockstep.py`); `test_seed_numbers.py` has
each formula once, with the document's numbers written out.
"""

from __future__ import annotations

import logging

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test

from model.lockstep import LockStep
from model.oracle import Numbers
from support.servers import Server

#: The document's limits, brought within the reach of a short program.
SMALL = Numbers(MAX_TOTAL_PENDING=9, MAX_PER_MAC_PENDING=3, MAX_DEFER_COUNT=2, BATCH_SIZE=3)


@pytest.mark.parametrize("numbers", [Numbers(), SMALL], ids=["document", "small"])
def test_the_scripts_and_the_documents_model_agree(
    server: Server, numbers: Numbers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "fairlane.store")  # the tests' servers persist nothing

    class Program(LockStep):
        def __init__(self) -> None:
            super().__init__(server, numbers)

    run_state_machine_as_test(
        Program,
        settings=hypothesis.settings(
            deadline=None,
            max_examples=40,
            stateful_step_count=60,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        ),
    )
