"""Telephone numbers: Chinese ones first, then those of other countries.

The rule: the less a number's shape says, the more the text around it has to say.

1. A Chinese mobile, fixed or 400/800 number counts as it stands.
2. With `+` and a country code, a number counts when that country's plan has it.
3. With punctuation, it counts in any groups after a word such as "phone" or 电话; without one,
   when a plan of `REGIONS` has it in just these groups, with the 0 that is dialled before it where
   that is how numbers are written.
4. A bare run of digits counts only after such a word, after a Chinese one for China alone; eleven
   digits from 1 are a Chinese mobile or nothing.

Dates, dotted quads and the groups of cards and identity numbers are no phones, valid or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

import phonenumbers
from phonenumbers import Leniency, PhoneMetadata, PhoneNumberMatcher

from fairlane.detect.finding import FindingType
from fairlane.detect.rules.span import Span

# Asked in this order; the first whose plan has the number names the rule. Canada is in the plan of
# the US. China stands last, for groupings that its own patterns do not have.
REGIONS: Final = ("US", "GB", "DE", "FR", "IL", "IN", "BR", "JP", "HK", "CN")
_WITHOUT_ZERO: Final = frozenset({"US", "BR"})

_BEFORE: Final = (
    r"(?:(?<![0-9A-Za-z_+])|(?<=(?i:tel))|(?<=(?i:phone))|(?<=(?i:mobile)))(?<![0-9]\.)"
)
# Not the national part after another country's code.
_NOT_ABROAD: Final = (
    r"(?<!\+[0-9][ -])(?<!\+[0-9]{2}[ -])(?<!\+[0-9]{3}[ -])"
    r"(?<![^0-9]00[0-9]{2}[ -])(?<!^00[0-9]{2}[ -])"
)
_AFTER: Final = r"(?![0-9A-Za-z_])"
_COUNTRY: Final = r"(?:\(?(?:\+|00)?86\)?[ -]?)?"
_CHINESE: Final = re.compile(
    _BEFORE + _NOT_ABROAD + r"(?:"
    # Mobile: bare, or 3-4-4.
    rf"{_COUNTRY}1[3-9][0-9](?:[0-9]{{8}}|([ -])[0-9]{{4}}\1[0-9]{{4}}(?!-[0-9]))"
    # Fixed: area code, then seven or eight digits, perhaps with an extension.
    r"|(?:\(0(?:10|2[0-9]|[3-9][0-9]{2})\)[ -]?|0(?:10|2[0-9]|[3-9][0-9]{2})[ -])"
    r"(?:[1-9][0-9]{6,7}|[1-9][0-9]{2,3}[ -][0-9]{4})(?:-[0-9]{1,4})?"
    r"|(?<![0-9][ -])[48]00(?:[0-9]{7}|-[0-9]{3}-[0-9]{4}|-[0-9]{4}-[0-9]{3}|-[0-9]{7})"
    r")" + _AFTER
)

_KINDS: Final = (
    "fixed_line",
    "mobile",
    "toll_free",
    "premium_rate",
    "shared_cost",
    "personal_number",
    "voip",
    "pager",
    "uan",
)
_RUN: Final = re.compile(r"(?<![0-9A-Za-z_])(?:\(?\+[ (]?|\()?[0-9](?:[ .()/-]{0,3}[0-9])*+")
_WORD: Final = re.compile(r"[0-9A-Za-z_]")
_EXTENSION: Final = re.compile(
    r" ?(?:x|ext\.?|extension|#) ?[0-9]{1,6}(?![0-9A-Za-z_])", re.IGNORECASE
)
_LAST_GROUP: Final = re.compile(r"[^0-9]+[0-9]+\Z")
_NO_PHONE: Final = re.compile(
    r"(?<![0-9]\.)[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\.?[0-9])"  # dotted quad
    r"|[12][0-9]{3}([-./ ])[01]?[0-9]\1[0-3]?[0-9](?![0-9])"  # date, year first
    r"|[0-3]?[0-9]([-./])[01]?[0-9]\2[12][0-9]{3}(?![0-9])"  # date, year last
    r"|[0-9]{4}([ -])[0-9]{4}(?:\3[0-9]{4})+(?:\3[0-9]{1,3}(?![0-9]))?"  # card, account, identity
    r"|[0-9]{6}[ -][0-9]{8}[ -][0-9]{3}[0-9Xx]?"  # identity
    r"|(?<![0-9.])[0-9]{1,3}\.[0-9]{5,}(?![0-9.-])"  # decimal fraction
)
_GROUP: Final = re.compile(r"[0-9]+")
_LABEL: Final = re.compile(
    r"(?<![A-Za-z])(?:tele)?(?:phone|tel|mobile|cell|cellphone|call|fax|dial|sms|whatsapp|contact|"
    r"reach|number)(?:s|ular)?(?![A-Za-z])",
    re.IGNORECASE,
)
_OTHER_NUMBER: Final = re.compile(
    r"(?<![a-z])(?:order|account|card|invoice|serial|tracking|ticket|case|policy|reference|passport|id|"
    r"security|random|part|model|bank) numbers?\b",
    re.IGNORECASE,
)
_CHINESE_LABEL: Final = re.compile(r"电话|電話|手机|手機|座机|传真|热线|致电|拨打|联系方式")
_JOINTS: Final = (".", "-")
_LABEL_REACH: Final = 40
_BARE_MIN, _BARE_MAX = 9, 13
_DIGITS_MIN: Final = 7
_MOBILE_DIGITS: Final = 11
_DIGITS_MAX: Final = 15  # E.164
_RUN_MAX: Final = 120


def phones(text: str) -> Iterator[Span]:
    """Find telephone numbers; a rule is `phone.` and two letters of a country, or `phone.intl`."""
    for match in _CHINESE.finditer(text):
        yield Span(FindingType.PHONE, match.start(), match.end(), "phone.cn")
    # The rest keeps its places; a line feed ends every run.
    rest = _CHINESE.sub(lambda match: "\n" * len(match[0]), text)
    for start, end in _runs(rest):
        yield from _foreign(rest, start, end)


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Find runs of digits and phone punctuation, cut where they get longer than numbers do."""
    for match in _RUN.finditer(text):
        start, end = match.span()
        if end < len(text) and _WORD.match(text[end]):
            # The last group belongs to the word it touches.
            last = _LAST_GROUP.search(text, max(start, end - _RUN_MAX), end)
            if last is None:
                continue
            end = last.start()
        while end - start > _RUN_MAX:
            cut = text.rfind(" ", start, start + _RUN_MAX)
            if cut <= start:
                start = end  # no number has so many digits without a space
                break
            yield start, cut
            start = cut + 1
        if start < end:
            yield start, end


def _foreign(text: str, start: int, end: int) -> Iterator[Span]:
    """Find numbers of any plan in a run, which may hold dates and the like between them."""
    if "+" in text[start:end]:
        yield from _matches(text[start : _with_extension(text, end)], start, "ZZ", Leniency.VALID)
        return
    for match in _NO_PHONE.finditer(text, start, end):
        yield from _national(text, start, match.start())
        start = match.end()
    yield from _national(text, start, end)


def _national(text: str, start: int, end: int) -> Iterator[Span]:
    run = text[start:end].rstrip(" -./(")
    groups = _GROUP.findall(run)
    digits = "".join(groups)
    if len(digits) < _DIGITS_MIN or len(groups) > len(digits) // 2:
        return
    before = text[max(0, start - _LABEL_REACH) : start]
    labelled = _LABEL.search(_OTHER_NUMBER.sub("", before)) is not None
    labelled_in_chinese = _CHINESE_LABEL.search(before) is not None
    plans = [region for region in REGIONS if _may_have(region, digits)]
    if run == digits:
        failed_mobile = len(digits) == _MOBILE_DIGITS and digits[0] == "1"
        if failed_mobile or not _BARE_MIN <= len(digits) <= _BARE_MAX:
            return
        if not labelled:
            plans = ["CN"] if labelled_in_chinese else []
    said = labelled or labelled_in_chinese or digits.startswith("00")
    if not said and digits[0] != "0":
        plans = [region for region in plans if region in _WITHOUT_ZERO]
    leniency = Leniency.VALID if said else Leniency.STRICT_GROUPING
    number = text[start : _with_extension(text, end)]
    for region in plans:
        found = list(_matches(number, start, region, leniency))
        if found:
            yield from found
            return


def _with_extension(text: str, end: int) -> int:
    extension = _EXTENSION.match(text, end)
    return extension.end() if extension else end


@cache
def _plan(region: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what a region's national numbers are, and what may be dialled before them.

    The regions of one country code are one plan: a matcher for the US takes a number of Canada.
    """
    own = PhoneMetadata.metadata_for_region(region)
    assert own is not None
    code = phonenumbers.country_code_for_region(region)
    sharing = phonenumbers.COUNTRY_CODE_TO_REGION_CODE[code]
    plans = [PhoneMetadata.metadata_for_region(other) for other in sharing]
    kinds = (getattr(plan, kind) for plan in plans for kind in _KINDS)
    numbers = "|".join(kind.national_number_pattern for kind in kinds if kind is not None)
    trunk = own.national_prefix_for_parsing or own.national_prefix or ""
    return re.compile(numbers), re.compile(rf"(?:00)?{code}|{trunk}")


def _may_have(region: str, digits: str) -> bool:
    """Tell, much faster than by matching, whether a plan may have a number in these digits."""
    if len(digits) > _DIGITS_MAX or digits.startswith("00"):
        return True
    numbers, prefixes = _plan(region)
    prefix = prefixes.match(digits)
    return bool(numbers.fullmatch(digits) or (prefix and numbers.fullmatch(digits, prefix.end())))


def _matches(run: str, offset: int, region: str, leniency: int) -> Iterator[Span]:
    for match in PhoneNumberMatcher(run, region, leniency=leniency):
        if run[: match.start].endswith(_JOINTS) or run[match.end :].startswith(_JOINTS):
            continue  # a part of a longer number is none by itself
        country = phonenumbers.region_code_for_number(match.number)
        yield Span(
            FindingType.PHONE,
            offset + match.start,
            offset + match.end,
            f"phone.{country.lower() if country and country.isalpha() else 'intl'}",
        )
