"""Chinese resident identity cards (GB 11643-1999), with or without spaces.

The rule: 18 characters count when region, date of birth and check digit all hold. The 15-digit
cards from before 1999 carry no check digit, so they count only where the text says what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Final

from stdnum.cn import ric

from fairlane.detect.finding import FindingType
from fairlane.detect.rules.span import Span

# Looked ahead for, not consumed: a number may begin inside a longer run of spaced groups.
_CARD: Final = re.compile(
    r"(?<![0-9A-Za-z_])(?<![0-9]\.)(?=([1-9](?:[ -]?[0-9]){16}[ -]?[0-9Xx])(?![0-9A-Za-z_]))"
)
_OLD_CARD: Final = re.compile(
    r"(?:身份证|身份證|身份号码|证件号|ID ?(?:card|number|no\.?))[^0-9\n]{0,12}"
    r"([1-9][0-9]{14})(?![0-9A-Za-z_])",
    re.IGNORECASE,
)
_SEPARATORS: Final = str.maketrans("", "", " -")

# GB/T 2260: provinces; 71 and 81 to 83 for residents from Taiwan, Hong Kong and Macao.
_PROVINCES: Final = frozenset(
    str(code)
    for codes in (
        range(11, 16),
        range(21, 24),
        range(31, 38),
        range(41, 47),
        range(50, 55),
        range(61, 66),
        (71, 81, 82, 83),
    )
    for code in codes
)
_FIRST_YEAR, _LAST_YEAR = 1850, 2099


def id_cards(text: str) -> Iterator[Span]:
    """Find identity card numbers."""
    for match in _CARD.finditer(text):
        if _holds(match[1].translate(_SEPARATORS).upper()):
            yield Span(FindingType.ID_CARD, match.start(1), match.end(1), "id_card.gb11643")
    for match in _OLD_CARD.finditer(text):
        number = match[1]
        if number[:2] in _PROVINCES and _is_date(f"19{number[6:12]}"):
            yield Span(FindingType.ID_CARD, match.start(1), match.end(1), "id_card.gb11643_1989")


def _holds(number: str) -> bool:
    return (
        number[:2] in _PROVINCES
        and _is_date(number[6:14])
        and bool(ric.calc_check_digit(number) == number[-1])
    )


def _is_date(digits: str) -> bool:
    try:
        day = date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return False
    return _FIRST_YEAR <= day.year <= _LAST_YEAR
