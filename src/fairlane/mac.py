"""MAC addresses in, canonical form out.

The rule: one device has one spelling. Every way in accepts the usual notations of an EUI-48 or
EUI-64 and keeps the canonical form only (lower case, colons), so six spellings are one device and
nothing else reaches a key.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from fairlane.errors import InvalidMac

_CANONICAL: Final = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}(?:(?::[0-9a-f]{2}){2})?")
_NOTATIONS: Final = re.compile(
    r"""(?xi)
      [0-9a-f]{2}(?::[0-9a-f]{2}){5}(?:(?::[0-9a-f]{2}){2})?     # aa:bb:cc:dd:ee:ff
    | [0-9a-f]{2}(?:-[0-9a-f]{2}){5}(?:(?:-[0-9a-f]{2}){2})?     # AA-BB-CC-DD-EE-FF
    | [0-9a-f]{4}(?:\.[0-9a-f]{4}){2}(?:\.[0-9a-f]{4})?          # aabb.ccdd.eeff
    | [0-9a-f]{12}(?:[0-9a-f]{4})?                               # aabbccddeeff
    """,
    re.ASCII,
)
_SEPARATORS: Final = str.maketrans("", "", ":-.")
_SHOWN: Final = 64


def canonical(text: str) -> str:
    """Return the canonical form of a device's MAC address, `aa:bb:cc:dd:ee:ff`.

    Accepts EUI-48 and EUI-64 with colons, hyphens, Cisco dots or no separator, in either case.
    An EUI-64 is a device of its own. The canonical form maps to itself.

    Raises InvalidMac for anything else: missing zeros, mixed separators, white space, other
    scripts' digits, and addresses that name no single device (multicast, broadcast, all zero).
    """
    if not isinstance(text, str):
        raise InvalidMac(f"mac: expected text such as aa:bb:cc:dd:ee:ff, got {type(text).__name__}")
    return _canonical(text)


# A gateway names the same devices again and again. Only addresses are kept: an error is not.
@lru_cache(maxsize=16_384)
def _canonical(text: str) -> str:
    if _CANONICAL.fullmatch(text) is None:
        if _NOTATIONS.fullmatch(text) is None:
            raise InvalidMac(
                f"mac: {_shown(text)} is no EUI-48 or EUI-64; "
                "write six or eight pairs of hex digits, as in aa:bb:cc:dd:ee:ff"
            )
        digits = text.translate(_SEPARATORS).lower()
        text = ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))
    if int(text[1], 16) & 1:
        raise InvalidMac(f"mac: {text} is a group address (multicast or broadcast), not a device")
    if not text.strip("0:"):
        raise InvalidMac(f"mac: {text} is the empty address, not a device")
    return text


def _shown(text: str) -> str:
    return ascii(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
