"""Passports and travel permits.

The rule: no passport number has a check digit of its own, so a number counts by itself only in
the forms of Chinese passports and permits, capital letter first; others need the word before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fairlane.detect.finding import FindingType
from fairlane.detect.rules.span import Span

_CHINESE: Final = re.compile(
    r"(?<![0-9A-Za-z_])(?:"
    r"[GEDSPKLTWC][0-9]{8}"  # ordinary, diplomatic, service, public affairs; permits C, L, T, W
    r"|E[A-HJ-NP-Z][0-9]{7}"  # electronic, since the eight digits ran out
    r"|(?:DE|SE|PE|KJ|MA|MB|CA|CB|CD)[0-9]{7}"
    r"|[DSP][0-9]{7}"
    r"|[HM](?:[0-9]{10}|[0-9]{8})"  # home return permits of Hong Kong and Macao
    r")(?![0-9A-Za-z_])"
)
_NAMED: Final = re.compile(
    r"(?:passport|护照|護照|通行证|通行證)"
    r"[ \t]{0,3}(?:number|num\.?|no\.?|nr\.?|#|号码|号|號碼|號)?"
    r"[ \t]{0,3}(?:is|为|為|是)?[ \t]{0,3}[:#=]?[ \t]{0,3}"
    r"([A-Z]{0,2}[0-9]{6,9}[A-Z]?)(?![0-9A-Za-z_])",
    re.IGNORECASE,
)


def passports(text: str) -> Iterator[Span]:
    """Find passport and travel permit numbers."""
    for match in _CHINESE.finditer(text):
        yield Span(FindingType.PASSPORT, match.start(), match.end(), "passport.cn")
    for match in _NAMED.finditer(text):
        yield Span(FindingType.PASSPORT, match.start(1), match.end(1), "passport.named")
