"""Times and counts as people read them."""

from __future__ import annotations

import pytest

from fairlane.sim.units import count, duration, percent


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "–"), (0, "0"), (0.5, "0.5 ms"), (7, "7 ms"), (999, "999 ms"), (1_000, "1 s"),
        (12_345, "12.3 s"), (59_999, "60 s"), (60_000, "1 min"), (3_600_000 * 5.25, "5.25 h"),
        (86_400_000 * 92, "92 d"), (86_400_000 * 1234.5, "1234 d"),
    ],
)  # fmt: skip
def test_duration(ms: float | None, text: str) -> None:
    assert duration(ms) == text


def test_percent_and_count() -> None:
    assert [percent(share) for share in (None, 0, 0.6000000001, 0.12345, 1)] == [
        "–", "0 %", "60 %", "12.3 %", "100 %",
    ]  # fmt: skip
    assert count(1234567.0) == "1,234,567"
