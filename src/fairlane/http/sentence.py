"""What a route is called.

The rule: a route has its verb's name and its verb's sentence; nobody writes a second one.
"""

from __future__ import annotations

from typing import Any

from fairlane.verbs import Verb


def sentence(verb: type[Verb[Any]]) -> str:
    """Return the sentence of a verb."""
    return (verb.__doc__ or "").splitlines()[0]
