"""The steps of one round trip, and what their replies lead to.

The rule: a window ends before anything that its own replies could bring about. A task that a claim
of it starts cannot end before the shortest task of its lane would, so up to then everything is
known beforehand, and the result is the same as with a round trip an event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from fairlane.errors import FairlaneError
from fairlane.sim.policies import Call, Policy, Step

FAR: Final = 2**62
#: Steps in one pipeline, about.
_MOST_STEPS: Final = 2_000

Then = Callable[[Any], None]


class Window:
    """Steps that are planned and not yet sent.

    `arrived` and `ended` count their tasks by lane: the lanes do not know of them yet.
    """

    def __init__(self) -> None:
        self.horizon_ms = FAR
        self.arrived: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self._steps: list[Step] = []
        self._then: list[Then | None] = []
        self._brought = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to send."""
        return not self._steps

    @property
    def has_plans(self) -> bool:
        """Whether it holds more than what the last window's replies brought."""
        return len(self._steps) > self._brought

    @property
    def is_bounded(self) -> bool:
        """Whether something in it changes what runs, in a way that only its replies tell."""
        return self.horizon_ms < FAR

    def takes(self, at_ms: int) -> bool:
        """Whether what happens at that time is known already, and there is room for it."""
        return at_ms < self.horizon_ms and len(self._steps) < _MOST_STEPS

    def open(self) -> None:
        """Begin to plan, after what is there already."""
        self._brought = len(self._steps)

    def bound(self, at_ms: int) -> None:
        """End the window before that time."""
        self.horizon_ms = min(self.horizon_ms, at_ms)

    def add(self, at_ms: int, call: Call, then: Then | None = None) -> None:
        """Plan a call; `then` gets its reply."""
        self._steps.append((at_ms, call))
        self._then.append(then)

    def send(self, policy: Policy) -> int:
        """Send the steps and follow their replies, in order; return how many steps that were.

        What the replies bring is the beginning of the next window. Raises a verb's error.
        """
        steps, then = self._steps, self._then
        self._steps, self._then = [], []
        self.horizon_ms = FAR
        self.arrived.clear()
        self.ended.clear()
        for reply, follow in zip(policy.run(steps), then, strict=True):
            if isinstance(reply, FairlaneError):
                raise reply
            if follow is not None:
                follow(reply)
        return len(steps)
