"""A flaw: something in the store that is not what it should be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Flaw:
    """What of whom is stored as what, and what would be right.

    `who` is a task id, a MAC, or `store` for what is counted over all. A yes or no is 1 or 0.
    """

    who: str
    what: str
    found: str
    right: str

    def __str__(self) -> str:
        """Return the flaw as one line."""
        return f"{self.who}: {self.what}: {self.found}, should be {self.right}"
