"""What detection found, and how it is shown.

The rule: a finding keeps its value, but nothing shows it unasked: `repr` leaves it out, `to_dict`
masks it unless told to reveal it, and a mask is as long as what it hides, so spans hold in a
masked copy too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

Box: TypeAlias = tuple[tuple[int, int], ...]

MASK: Final = "*"


class FindingType(StrEnum):
    """The kinds of sensitive content."""

    PHONE = "PHONE"
    ID_CARD = "ID_CARD"
    BANK_CARD = "BANK_CARD"
    EMAIL = "EMAIL"
    IBAN = "IBAN"
    IP = "IP"
    MAC = "MAC"
    PASSPORT = "PASSPORT"
    KEYWORD = "KEYWORD"


# Letters and digits that stay readable at the head and at the tail of a value: enough for a person
# to tell two findings apart, too little to use. An e-mail keeps its domain besides (see `mask`).
_SHOWN: Final = {
    FindingType.PHONE: (3, 2),
    FindingType.ID_CARD: (3, 2),
    FindingType.BANK_CARD: (0, 4),
    FindingType.EMAIL: (1, 0),
    FindingType.IBAN: (2, 4),
    FindingType.IP: (1, 0),
    FindingType.MAC: (6, 0),
    FindingType.PASSPORT: (1, 2),
    FindingType.KEYWORD: (1, 0),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One sensitive piece of a text or an image.

    `start` and `end` are code points of the text that was searched, end exclusive, and
    `text[start:end] == value`. In an image they count within the recognised line number `line`
    (from 0), and `box` has that line's four corners as (x, y) pixels, clockwise from the top left.
    `rule` names what found it, such as `bank_card.luhn`.
    """

    type: FindingType
    value: str = field(repr=False)
    start: int
    end: int
    rule: str
    box: Box | None = None
    line: int | None = None

    def to_dict(self, *, reveal: bool = False) -> dict[str, Any]:
        """Return the finding as JSON values, its value masked unless `reveal`.

        `{type, value, start, end, rule}` in a text, `{type, value, line, box, rule}` in an image.
        """
        shown: dict[str, Any] = {
            "type": self.type.value,
            "value": self.value if reveal else mask(self.type, self.value),
        }
        if self.box is None:
            shown.update(start=self.start, end=self.end)
        else:
            shown.update(line=self.line, box=[list(point) for point in self.box])
        shown["rule"] = self.rule
        return shown


def mask(kind: FindingType, value: str) -> str:
    """Return a value with most of its letters and digits starred, as long as the value is.

    At least half of the letters and digits are hidden. Separators stay, and so does the domain of
    an e-mail address. A value without any, as the address `::`, is starred whole.
    """
    hidden_to = len(value)
    if kind is FindingType.EMAIL:
        at = max(value.rfind("@"), value.rfind("＠"))
        hidden_to = at if at > 0 else hidden_to
    places = [index for index in range(hidden_to) if value[index].isalnum()]
    head, tail = _SHOWN[kind]
    if head + tail > len(places) // 2:
        head, tail = min(head, len(places) // 2), 0
    starred = set(places[head : len(places) - tail]) or set(range(hidden_to))
    return "".join(MASK if index in starred else char for index, char in enumerate(value))
