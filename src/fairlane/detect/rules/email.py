"""E-mail addresses, of ASCII and of international domains.

The rule: start from each `@` and look a bounded way to both sides, so no text is slow. A domain
ends in a top-level domain. Chinese characters end an address, since Chinese text has no spaces;
only a name that is Chinese to the last, under a Chinese top-level domain, may hold them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fairlane.detect.finding import FindingType
from fairlane.detect.rules.ip import is_ip
from fairlane.detect.rules.span import Span

_LOCAL_MAX, _DOMAIN_MAX = 64, 253  # RFC 5321, 4.5.3.1
_LOOK_BEHIND: Final = 256

_HAN: Final = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
_KANA_HANGUL: Final = "\u3040-\u30ff\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
_ALNUM: Final = rf"(?:(?![_{_HAN}{_KANA_HANGUL}])\w)"
_LABEL: Final = rf"{_ALNUM}(?:(?:{_ALNUM}|-){{0,61}}{_ALNUM})?"
_HAN_TLDS: Final = (
    "中国|中國|香港|澳门|澳門|台湾|台灣|新加坡|公司|集团|商城|"
    "网络|網絡|网址|网站|中文网|在线|政务|公益"
)

_LOCAL_CHAR: Final = re.compile(rf"{_ALNUM}|[_.%+~'-]")
# A label may be Chinese right after the `@`, where no sentence can have begun.
_DOMAIN: Final = re.compile(
    rf"(?:[{_HAN}]{{1,20}}\.)?(?:{_LABEL}\.)*(?<=\.)(?:xn--[a-zA-Z0-9-]{{1,58}}[a-zA-Z0-9]|(?:(?![0-9]){_ALNUM}){{2,63}})"
    rf"(?![0-9A-Za-z_])"
)
_HAN_DOMAIN: Final = re.compile(rf"[0-9A-Za-z{_HAN}-]{{1,63}}\.(?:{_HAN_TLDS})")
_LITERAL: Final = re.compile(r"\[(?:IPv6:)?([0-9A-Fa-f:.]{2,45})\]")
# Names of picture files such as `icon@2x.png`.
_FILE: Final = re.compile(r"(?:png|jpe?g|gif|svg|webp|bmp|ico|avif)\Z", re.IGNORECASE)
_USER_INFO: Final = re.compile(r"://[^\s/@]*\Z")


def emails(text: str) -> Iterator[Span]:
    """Find e-mail addresses."""
    at = text.find("@")
    while at >= 0:
        start = _local_start(text, at)
        end = _domain_end(text, at + 1) if start is not None else None
        if start is not None and end is not None:
            yield Span(FindingType.EMAIL, start, end, "email.address")
        at = text.find("@", at + 1)


def _local_start(text: str, at: int) -> int | None:
    start = at
    while start > 0 and at - start <= _LOCAL_MAX and _LOCAL_CHAR.match(text[start - 1]):
        start -= 1
    if at - start > _LOCAL_MAX:
        return None
    local = text[start:at]
    # Two dots in a row cannot be inside an address: what follows them can be one.
    after_dots = local.rfind("..")
    if after_dots >= 0:
        start += after_dots + 2
    while start < at and text[start] in ".'%+~-":
        start += 1
    if start == at or text[at - 1] in ".'":
        return None
    if _USER_INFO.search(text, max(0, start - _LOOK_BEHIND), start):
        return None
    return start


def _domain_end(text: str, start: int) -> int | None:
    literal = _LITERAL.match(text, start)
    if literal:
        return literal.end() if is_ip(literal[1]) else None
    window = start + _DOMAIN_MAX
    found = _HAN_DOMAIN.match(text, start, window) or _DOMAIN.match(text, start, window)
    if found is None or _FILE.search(found[0]):
        return None
    return found.end()
