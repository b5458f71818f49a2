"""IP addresses: IPv4, and IPv6 with its zone, its compressed and its mixed forms.

The rule: what the standard library's `ipaddress` accepts is an address; the patterns here only
say where one may begin and end. A prefix length or a port is no part of it, and a run of groups
that is no address hides no address inside, but for a whole dotted quad.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from fairlane.detect.finding import FindingType
from fairlane.detect.rules.span import Span

_V4: Final = re.compile(
    r"(?<![0-9A-Za-z_])(?<![0-9]\.)[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z_])"
)
_V6_RUN: Final = re.compile(r"[0-9A-Fa-f]{0,8}:[0-9A-Fa-f:]*+(?:\.[0-9]{1,3})*+")
_ZONE: Final = re.compile(r"%[0-9A-Za-z](?:[0-9A-Za-z_.-]{0,30}[0-9A-Za-z])?")
_WORD: Final = re.compile(r"[0-9A-Za-z_]")
_V6_MAX: Final = 45  # characters of the longest mixed form
# A bare `::` is an address only where nothing of a program or a sentence touches it.
_BARE_SIDES: Final = re.compile(r"[\s=,;()\[\]{}<>\"'`|/]")


def ips(text: str) -> Iterator[Span]:
    """Find IPv4 and IPv6 addresses."""
    for match in _V4.finditer(text):
        if is_ip(match[0]):
            yield Span(FindingType.IP, match.start(), match.end(), "ip.v4")
    for match in _V6_RUN.finditer(text):
        span = _v6_span(text, match.start(), match.end())
        if span is not None:
            yield Span(FindingType.IP, *span, "ip.v6")


def is_ip(address: str) -> bool:
    """Tell whether the standard library takes this for an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True


def _v6_span(text: str, start: int, end: int) -> tuple[int, int] | None:
    # "IP:fe80::1" and "fe80::1: up" have a colon of the sentence at one end.
    if text[start] == ":" and text[start : start + 2] != "::":
        start += 1
    elif start > 0 and _WORD.match(text[start - 1]):
        return None
    if text[end - 1] == ":" and text[end - 2 : end] != "::":
        end -= 1
    if not 2 <= end - start <= _V6_MAX or (end < len(text) and _WORD.match(text[end])):
        return None
    if not is_ip(text[start:end]):
        return None
    if text[start:end] == "::" and not _stands_alone(text, start, end):
        return None
    zone = _ZONE.match(text, end)
    return start, zone.end() if zone else end


def _stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    return all(not side or _BARE_SIDES.match(side) for side in (before, after))
