"""International bank account numbers (ISO 13616), bare or in groups.

The rule: a number has exactly its country's length and structure, and its check digits hold. The
checks that some countries have inside the account number are theirs, not the standard's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from stdnum import iban, numdb

from fairlane.detect.finding import FindingType
from fairlane.detect.rules.span import Span

_START: Final = re.compile(r"(?<![0-9A-Za-z_])([A-Za-z]{2})[ -]?[0-9]{2}")
_FIELD: Final = re.compile(r"([0-9]+)!")
_PREFIX: Final = 4  # country and check digits


def ibans(text: str) -> Iterator[Span]:
    """Find IBANs, in capitals or not."""
    for match in _START.finditer(text):
        pattern = _pattern(match[1].upper())
        found = pattern.match(text, match.start()) if pattern else None
        if found and iban.is_valid(found[0], check_country=False):
            yield Span(FindingType.IBAN, found.start(), found.end(), "iban.mod97")


@lru_cache(maxsize=26 * 26)
def _pattern(country: str) -> re.Pattern[str] | None:
    structure = numdb.get("iban").info(country)[0][1].get("bban", "")
    length = _PREFIX + sum(int(size) for size in _FIELD.findall(structure))
    if length == _PREFIX:
        return None
    return re.compile(rf"[0-9A-Za-z](?:[ -]?[0-9A-Za-z]){{{length - 1}}}(?![0-9A-Za-z_])")
