"""The document's mathematics, at its own numbers and at its edges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import formulas

NUMBERS = st.integers(0, 10**7)


def test_backoff_is_the_documents_series() -> None:
    series = [formulas.backoff_ms(defers) // 1000 for defers in range(1, 9)]
    assert series == [30, 60, 120, 240, 480, 600, 600, 600]


@given(st.integers(1, 10**9))
def test_backoff_never_passes_its_cap_whatever_the_number(defers: int) -> None:
    assert formulas.backoff_ms(1) <= formulas.backoff_ms(defers) <= formulas.DEFER_BACKOFF_MAX_MS
    assert formulas.backoff_ms(defers) <= formulas.backoff_ms(defers + 1)


@pytest.mark.parametrize("defers", [0, -1])
def test_there_is_no_backoff_without_a_defer(defers: int) -> None:
    with pytest.raises(ValueError, match="first defer"):
        formulas.backoff_ms(defers)


@pytest.mark.parametrize(
    ("waited_ms", "expected"), [(0, 0), (1_500, 1.5), (600_000, 600), (600_001, 600), (10**9, 600)]
)
def test_a_score_grows_with_the_wait_up_to_w_max(waited_ms: int, expected: float) -> None:
    assert formulas.score(waited_ms) == expected
    assert formulas.score(waited_ms, weight=0.5) == expected / 2


@pytest.mark.parametrize(
    ("now_ms", "oldest_ms", "expected"), [(10, None, 0), (10, 4, 6), (10, 10, 0), (10, 11, 0)]
)
def test_a_wait_is_never_negative(now_ms: int, oldest_ms: int | None, expected: int) -> None:
    assert formulas.wait_ms(now_ms, oldest_ms) == expected


def test_a_batch_is_small_while_another_starves() -> None:
    assert formulas.batch_size(other_device_starves=False) == 10
    assert formulas.batch_size(other_device_starves=True) == 1
    assert formulas.batch_size(True, normal=7, minimum=2) == 2


@pytest.mark.parametrize(
    ("pending", "devices", "expected"),
    [(0, 0, False), (5_000, 0, False), (5_001, 0, True), (0, 1, True), (5_001, 1, True)],
)
def test_overload_is_strictly_over_the_limit(pending: int, devices: int, expected: bool) -> None:
    assert formulas.overloaded(pending, devices) is expected


@pytest.mark.parametrize(
    ("pending", "expected"),
    [(0, 200), (4_599, 200), (4_600, 200), (4_602, 199), (4_998, 1), (4_999, 1), (6_000, 1)],
)
def test_a_devices_limit_shrinks_under_pressure(pending: int, expected: int) -> None:
    assert formulas.device_limit(pending) == expected


@given(NUMBERS, st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_quiet_device_may_always_have_one(pending: int, in_all: int, per_mac: int) -> None:
    limit = formulas.device_limit(pending, max_total_pending=in_all, max_per_mac_pending=per_mac)
    more = formulas.device_limit(pending + 1, max_total_pending=in_all, max_per_mac_pending=per_mac)
    assert 1 <= more <= limit <= per_mac
