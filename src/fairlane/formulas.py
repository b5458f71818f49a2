"""The requirement document's mathematics (section 四), as pure functions.

The rule: numbers of the document are the defaults here and nowhere else; the Lua prelude computes
the same, and a test compares the two on random inputs. Times are milliseconds.
"""

from __future__ import annotations

from typing import Final

AGING_MAX_WAIT_MS: Final = 600_000
AGING_WEIGHT: Final = 1.0
STARVATION_AFTER_MS: Final = 30_000
BATCH_SIZE: Final = 10
MIN_BATCH_SIZE: Final = 1
MAX_DEFERS: Final = 5
DEFER_BACKOFF_BASE_MS: Final = 30_000
DEFER_BACKOFF_MAX_MS: Final = 600_000
MAX_TOTAL_PENDING: Final = 5_000
MAX_PER_MAC_PENDING: Final = 200


def wait_ms(now_ms: int, oldest_created_at_ms: int | None) -> int:
    """W(d, t): how long the device's oldest task has waited; 0 without a task."""
    if oldest_created_at_ms is None:
        return 0
    return max(0, now_ms - oldest_created_at_ms)


def score(
    waited_ms: int,
    *,
    max_wait_ms: int = AGING_MAX_WAIT_MS,
    weight: float = AGING_WEIGHT,
) -> float:
    """S(d, t) = min(W, W_max) × α, in seconds (section 4.1)."""
    return min(waited_ms, max_wait_ms) / 1000 * weight


def batch_size(
    other_device_starves: bool,
    *,
    normal: int = BATCH_SIZE,
    minimum: int = MIN_BATCH_SIZE,
) -> int:
    """B(d): the small batch while any other device has waited T_starve or more (section 4.2)."""
    return minimum if other_device_starves else normal


def backoff_ms(
    defers: int,
    *,
    base_ms: int = DEFER_BACKOFF_BASE_MS,
    max_ms: int = DEFER_BACKOFF_MAX_MS,
) -> int:
    """Backoff(n) = min(Base × 2^(n−1), Backoff_max) for the n-th defer, n ≥ 1 (section 4.3).

    Raises ValueError for n < 1.
    """
    if defers < 1:
        message = f"the first defer is number 1, got {defers}"
        raise ValueError(message)
    # Past 2^31 the cap has long been reached; the bound keeps a hostile n from building a bignum.
    return min(base_ms << min(defers - 1, 31), max_ms)


def overloaded(
    global_pending: int,
    overloaded_devices: int,
    *,
    max_total_pending: int = MAX_TOTAL_PENDING,
) -> bool:
    """Overloaded = (G > G_max) ∨ (|O| > 0), O being the devices over their limit (section 4.4)."""
    return global_pending > max_total_pending or overloaded_devices > 0


def device_limit(
    global_pending: int,
    *,
    max_total_pending: int = MAX_TOTAL_PENDING,
    max_per_mac_pending: int = MAX_PER_MAC_PENDING,
) -> int:
    """Return how many pending tasks one device may have under `fair` admission.

    min(200, max(1, ½ × (5,000 − G))): under pressure the flooders are refused first and a quiet
    device still gets in.
    """
    return min(max_per_mac_pending, max(1, (max_total_pending - global_pending) // 2))
