"""One plain form of a text for the rules, and the way back to the text as it was written.

The rule: every code point is normalised by itself (NFKC; decimal digits of any script become
0-9, dashes of any length become `-`, invisible format characters vanish), so each one of the
result knows the one it came from, and a span of the result is exactly a span of the original.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

# Longer ones are phrases in one sign (18 for U+FDFA), which could only blow a text up.
_LONGEST: Final = 4


@dataclass(frozen=True, slots=True)
class Normalised:
    """A text in its plain form.

    `origins[i]` is the index in the original of the code point that gave `text[i]`; None means
    that both are the same, code point by code point.
    """

    text: str
    origins: tuple[int, ...] | None = None

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return where the non-empty span [start, end) of the plain form stands in the original.

        A code point that became several is taken whole.
        """
        if self.origins is None:
            return start, end
        return self.origins[start], self.origins[end - 1] + 1


def normalise(text: str) -> Normalised:
    """Return the plain form of a text."""
    if text.isascii():
        return Normalised(text)
    pieces = [_plain(char) for char in text]
    plain = "".join(pieces)
    if len(plain) == len(text) and all(len(piece) == 1 for piece in pieces):
        return Normalised(plain)
    origins = tuple(index for index, piece in enumerate(pieces) for _ in piece)
    return Normalised(plain, origins)


@lru_cache(maxsize=16384)
def _plain(char: str) -> str:
    if char.isascii():
        return char
    category = unicodedata.category(char)
    if category == "Cf":
        return ""
    if category == "Cs":
        # Half a character, as some JSON has: no UTF-8 carries it, and no rule looks for it.
        return "\N{REPLACEMENT CHARACTER}"
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category == "Pd" or char == "\N{MINUS SIGN}":
        return "-"
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) <= _LONGEST else char
