"""The rules for personal data, one kind a file.

The rule: `RULES` is the whole list, and `RANKS` says which of two overlapping findings stays. A
number that its check digits prove goes before a value whose syntax proves it, that before one
which only looks right, and personal data before a word of a list. Within a rank the longer
finding stays, then the earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fairlane.detect.finding import FindingType
from fairlane.detect.rules.bankcard import bank_cards
from fairlane.detect.rules.email import emails
from fairlane.detect.rules.iban import ibans
from fairlane.detect.rules.idcard import id_cards
from fairlane.detect.rules.ip import ips
from fairlane.detect.rules.mac import macs
from fairlane.detect.rules.passport import passports
from fairlane.detect.rules.phone import phones
from fairlane.detect.rules.span import Rule, Span

__all__ = ["RANKS", "RULES", "Rule", "Span"]

RULES: Final[tuple[Rule, ...]] = (
    id_cards,
    ibans,
    bank_cards,
    emails,
    ips,
    macs,
    phones,
    passports,
)

RANKS: Final[Mapping[FindingType, int]] = MappingProxyType(
    {
        # Region, date and check digit together: about one random number in 100,000 passes.
        FindingType.ID_CARD: 0,
        FindingType.IBAN: 0,
        # One check digit: one in ten passes.
        FindingType.BANK_CARD: 1,
        FindingType.EMAIL: 2,
        FindingType.IP: 2,
        FindingType.MAC: 2,
        FindingType.PHONE: 3,
        FindingType.PASSPORT: 3,
        FindingType.KEYWORD: 4,
    }
)
