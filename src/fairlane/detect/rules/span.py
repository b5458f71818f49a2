"""What a rule answers: a span of the plain text and the rule's name.

The rule: a rule is a function from a plain text to spans. It knows no other rule, reads no
setting, and its time grows with the text's length only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from fairlane.detect.finding import FindingType


class Span(NamedTuple):
    """Code points [start, end) of the plain text that one rule took for a `type`."""

    type: FindingType
    start: int
    end: int
    rule: str


Rule: TypeAlias = Callable[[str], Iterator[Span]]
