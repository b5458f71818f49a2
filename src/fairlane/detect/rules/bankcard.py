"""Bank cards: payment card numbers of ISO/IEC 7812, bare or in printed groups.

The rule: a number counts when an issuer of its leading digits gives out cards of its length and
the Luhn check digit holds. Groups are those that cards are printed in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from stdnum import luhn

from fairlane.detect.finding import FindingType
from fairlane.detect.rules.span import Span

_GROUPINGS: Final = (
    r"[0-9]{13,19}",
    r"[0-9]{4}(?:[ -]?[0-9]{4}){3}",  # OCR loses some of the spaces
    r"[0-9]{4}(?:[ -]?[0-9]{4}){3}[ -]?[0-9]{1,3}",
    r"[0-9]{4}[ -]?[0-9]{6}[ -]?[0-9]{4,5}",  # American Express, Diners Club
    r"[0-9]{4}(?:[ -][0-9]{3}){3}",
    r"[0-9]{6}[ -][0-9]{7,13}",  # issuer, then account
)
# Looked ahead for, not consumed: a number may begin inside a longer run of groups.
_CARDS: Final = tuple(
    re.compile(rf"(?<![0-9A-Za-z_+])(?<![0-9][.,])(?=({grouping})(?![0-9A-Za-z_]))")
    for grouping in _GROUPINGS
)
_SEPARATORS: Final = str.maketrans("", "", " -")


class _Network(NamedTuple):
    low: str
    high: str
    lengths: range


# Leading digits from `low` to `high`, compared over the length of `low`.
_NETWORKS: Final = (
    _Network("1", "1", range(15, 16)),  # UATP
    _Network("2200", "2204", range(16, 20)),  # Mir
    _Network("2221", "2720", range(16, 17)),  # Mastercard
    _Network("300", "305", range(14, 20)),  # Diners Club
    _Network("309", "309", range(14, 20)),
    _Network("34", "34", range(15, 16)),  # American Express
    _Network("36", "36", range(14, 20)),
    _Network("37", "37", range(15, 16)),
    _Network("38", "39", range(14, 20)),
    _Network("3528", "3589", range(16, 20)),  # JCB
    _Network("4", "4", range(13, 14)),  # Visa
    _Network("4", "4", range(16, 17)),
    _Network("4", "4", range(19, 20)),
    _Network("50", "50", range(13, 20)),  # Maestro, Dankort, Verve
    _Network("51", "55", range(16, 17)),  # Mastercard
    _Network("56", "59", range(13, 20)),  # Maestro
    _Network("6", "6", range(13, 20)),  # UnionPay, Discover, Maestro, RuPay
    _Network("81", "82", range(16, 20)),  # UnionPay, RuPay
    _Network("9", "9", range(16, 20)),  # national use: cards of Chinese banks, Troy
)


def bank_cards(text: str) -> Iterator[Span]:
    """Find card numbers."""
    for card in _CARDS:
        for match in card.finditer(text):
            digits = match[1].translate(_SEPARATORS)
            if _is_issued(digits) and luhn.is_valid(digits):
                yield Span(FindingType.BANK_CARD, match.start(1), match.end(1), "bank_card.luhn")


def _is_issued(digits: str) -> bool:
    return any(
        network.low <= digits[: len(network.low)] <= network.high and len(digits) in network.lengths
        for network in _NETWORKS
    )
