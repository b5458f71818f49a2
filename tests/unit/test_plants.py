"""The faults that `make chaos` plants have a place in the Lua: each stands in its file once."""

from __future__ import annotations

import pytest

from chaos.test_planted import FAULTS
from fairlane import scripts


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_fault_can_be_planted(fault: str) -> None:
    file, right, wrong, _ = FAULTS[fault]
    assert scripts.read(file).count(right) == 1
    assert wrong != right
