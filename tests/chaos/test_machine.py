"""The stateful proof at ten times the length that `make test` has."""

from __future__ import annotations

import logging

import pytest

from model.test_machine import CONFIGURATIONS, prove, share_of
from support.servers import Server

EXAMPLES = 3_000


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", list(CONFIGURATIONS))
def test_any_program_keeps_every_promise(
    server: Server, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "fairlane.store")  # the tests' servers persist nothing
    prove(server, name, share_of(server, EXAMPLES))
