"""MAC addresses (EUI-48): pairs with colons or dashes, and Cisco's dotted quads of four.

The rule: exactly six bytes with one separator. Broadcast and all zeros belong to no device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fairlane.detect.finding import FindingType
from fairlane.detect.rules.span import Span

# A whole run is taken at once: seven pairs are no address, and no run is searched twice.
_PAIRS: Final = re.compile(r"(?<![0-9A-Za-z_])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2})++")
_GOES_ON: Final = re.compile(r"[:-]?[0-9A-Za-z_]")
_QUADS: Final = re.compile(
    r"(?<![0-9A-Za-z_.])[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){2}(?![0-9A-Za-z_])(?!\.[0-9A-Fa-f])"
)
_PAIRS_LENGTH: Final = 17
_NOBODY: Final = ({"f"}, {"0"})


def macs(text: str) -> Iterator[Span]:
    """Find MAC addresses."""
    for match in _PAIRS.finditer(text):
        separators = set(match[0][2::3])
        if len(match[0]) != _PAIRS_LENGTH or _GOES_ON.match(text, match.end()):
            continue
        if len(separators) == 1 and _is_somebody(match[0]):
            rule = "mac.colon" if separators == {":"} else "mac.dash"
            yield Span(FindingType.MAC, match.start(), match.end(), rule)
    for match in _QUADS.finditer(text):
        if _is_somebody(match[0]):
            yield Span(FindingType.MAC, match.start(), match.end(), "mac.cisco")


def _is_somebody(address: str) -> bool:
    return set(address.lower()) - set(":-.") not in _NOBODY
