"""MAC addresses: every usual spelling in, one canonical form out."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.errors import InvalidMac
from fairlane.mac import canonical

EUI_48 = "02:1a:2b:3c:4d:5e"
EUI_64 = "02:1a:2b:ff:fe:3c:4d:5e"


def octets(size: int) -> st.SearchStrategy[bytes]:
    """Return addresses that name one device."""
    return st.binary(min_size=size, max_size=size).filter(lambda raw: not raw[0] & 1 and any(raw))


def spellings(raw: bytes) -> list[str]:
    digits = raw.hex()
    spelt = [digits]
    for size, separator in ((2, ":"), (2, "-"), (4, ".")):
        parts = [digits[at : at + size] for at in range(0, len(digits), size)]
        spelt.append(separator.join(parts))
    return [*spelt, *(text.upper() for text in spelt)]


@given(st.one_of(octets(6), octets(8)))
def test_all_spellings_are_one_device_and_its_form_is_a_fixed_point(raw: bytes) -> None:
    (form,) = {canonical(text) for text in spellings(raw)}
    assert form == raw.hex(":")
    assert canonical(form) == form


def test_an_eui_64_is_a_device_of_its_own() -> None:
    assert canonical(EUI_64) != canonical(EUI_48)


@pytest.mark.parametrize(
    "text",
    [
        "02:1a:2b:3c:4d:5",
        "2:1a:2b:3c:4d:5e",
        "02:1a:2b:3c:4d",
        "02:1a:2b:3c:4d:5e:6f",
        "02:1a:2b:3c:4d-5e",
        "02:1a:2b:3c:4d:5e:",
        ":02:1a:2b:3c:4d:5e",
        "021a.2b3c:4d5e",
        "021a:2b3c:4d5e",
        "02-1a-2b-3c-4d-5g",
        "02 1a 2b 3c 4d 5e",
        "021a2b3c4d5",
        "021a2b3c4d5e6f",
        EUI_48 + "\n",
        " " + EUI_48,
        EUI_48 + "\x00",
        "０２:1a:2b:3c:4d:5e",
        "٠٢:1a:2b:3c:4d:5e",
        "02:1a:2b:3c:4d:5\u212f",
        "0x021a2b3c4d5e",
        "",
        "*",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidMac, match="EUI-48"):
        canonical(text)


@pytest.mark.parametrize("text", ["01:00:5e:00:00:01", "33:33:00:00:00:01", "FFFFFFFFFFFF"])
def test_a_group_is_no_device(text: str) -> None:
    with pytest.raises(InvalidMac, match="group"):
        canonical(text)


@pytest.mark.parametrize("text", ["00:00:00:00:00:00", "0000.0000.0000", "0" * 16])
def test_nor_is_the_empty_address(text: str) -> None:
    with pytest.raises(InvalidMac, match="empty"):
        canonical(text)


@pytest.mark.parametrize("value", [None, 7, 0x021A2B3C4D5E, EUI_48.encode(), [EUI_48]])
def test_nor_is_what_is_no_text(value: Any) -> None:
    with pytest.raises(InvalidMac, match=type(value).__name__):
        canonical(value)


@given(st.text(max_size=40))
def test_no_text_gets_through_unless_it_is_an_address(text: str) -> None:
    with suppress(InvalidMac):
        form = canonical(text)
        assert re.fullmatch(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}((:[0-9a-f]{2}){2})?", form)


def test_a_long_text_is_not_repeated_in_the_error() -> None:
    with pytest.raises(InvalidMac) as raised:
        canonical("x" * 100_000)
    assert len(str(raised.value)) < 300
