"""Wait for what happens in another process, without guessing how long it takes.

The rule: a test never sleeps; it says what it waits for, and this is the only place that polls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(check: Callable[[], T], timeout_s: float = 10.0, every_s: float = 0.02) -> T:
    """Call `check` until it returns something true, and return that.

    A check that fails an assertion is tried again as well, so it may explain itself by asserting:
    the failure at the end shows what it said last.
    """
    __tracebackhide__ = True
    ends = time.monotonic() + timeout_s
    while True:
        said: AssertionError | None = None
        try:
            seen = check()
        except AssertionError as error:
            said, last = error, f"failed: {error}"
        else:
            if seen:
                return seen
            last = f"returned {seen!r}"
        if time.monotonic() > ends:
            message = f"not within {timeout_s:g} s: {_described(check)}; at last it {last}"
            raise AssertionError(message) from said
        time.sleep(every_s)


def eventually_passes(
    check: Callable[[], None], timeout_s: float = 10.0, every_s: float = 0.02
) -> None:
    """Call a `check` that only asserts until it fails no more."""
    __tracebackhide__ = True

    def passes() -> bool:
        check()
        return True

    passes.__qualname__ = _described(check)
    eventually(passes, timeout_s, every_s)


def passes(seconds: float) -> None:
    """Let a fault last for a while: the one wait that is for a time, not for what happens."""
    time.sleep(seconds)


def _described(check: Callable[[], object]) -> str:
    return getattr(check, "__qualname__", repr(check)).replace(".<locals>", "")
