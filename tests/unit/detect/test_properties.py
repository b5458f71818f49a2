"""What holds for every text: spans, order, masks, normalisation; and no text is slow."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.detect.finding import Finding, FindingType, mask
from fairlane.detect.normalise import normalise
from fairlane.detect.text import detect, masked
from fairlane.settings import Settings

SENSITIVE = [
    "13812345678",
    "+86 138-1234-5678",
    "(212) 555-1234",
    "110101199003077475",
    "1101 0119 9001 0112 37",
    "4111 1111 1111 1111",
    "test@example.com",
    "GB29NWBK60161331926819",
    "192.168.1.1",
    "fe80::1%eth0",
    "00:1A:2B:3C:4D:5E",
    "E12345678",
    "机密",
]
FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
# Characters that normalisation lengthens, shortens, or replaces.
ODD = "①㎏ﬁ½℡ﷺ\u200b\u00ad\ufeff²Ⅷ—–－ß\u0130e\u0301각"

pieces = st.one_of(
    st.sampled_from(SENSITIVE),
    st.sampled_from(SENSITIVE).map(lambda text: text.translate(FULL_WIDTH)),
    st.text(ODD, max_size=3),
    st.text("请联系，。:：(（ -\n\t", max_size=3),
    st.text(max_size=5),
)
texts = st.lists(pieces, max_size=8).map("".join)


@given(texts)
def test_findings_stand_on_the_text_in_order_without_overlap(text: str) -> None:
    end = 0
    for finding in detect(text):
        assert finding.start >= end
        assert finding.end > finding.start
        assert finding.value == text[finding.start : finding.end]
        end = finding.end


@given(texts)
def test_a_masked_copy_is_as_long_and_shows_no_value(text: str) -> None:
    findings = detect(text)
    copy = masked(text, findings)
    assert len(copy) == len(text)
    for finding in findings:
        assert copy[finding.start : finding.end] == mask(finding.type, finding.value)
        assert copy[finding.start : finding.end] != finding.value


@given(st.sampled_from(FindingType), st.text(min_size=1, max_size=30))
def test_a_mask_hides_half_of_the_letters_and_digits(kind: FindingType, value: str) -> None:
    shown = mask(kind, value)
    assert len(shown) == len(value)
    if kind is FindingType.EMAIL:
        value = value.rpartition("@")[0] if "@" in value[1:] else value
        shown = shown[: len(value)]
    before = sum(char.isalnum() for char in value)
    after = sum(char.isalnum() for char in shown)
    assert after <= before // 2


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (FindingType.PHONE, "138-1234-5678", "138-****-**78"),
        (FindingType.PHONE, "09-7625400", "09-7******"),
        (FindingType.ID_CARD, "110101199003077475", "110*************75"),
        (FindingType.BANK_CARD, "4111 1111 1111 1111", "**** **** **** 1111"),
        (FindingType.EMAIL, "test@example.com", "t***@example.com"),
        (FindingType.IBAN, "GB29NWBK60161331926819", "GB****************6819"),
        (FindingType.IP, "192.168.1.1", "1**.***.*.*"),
        (FindingType.MAC, "00:1A:2B:3C:4D:5E", "00:1A:2B:**:**:**"),
        (FindingType.PASSPORT, "E12345678", "E******78"),
        (FindingType.KEYWORD, "机密", "机*"),
        (FindingType.KEYWORD, "密", "*"),
    ],
)
def test_masks(kind: FindingType, value: str, shown: str) -> None:
    assert mask(kind, value) == shown


def test_a_finding_does_not_show_its_value_unasked() -> None:
    finding = Finding(FindingType.PHONE, "13812345678", 0, 11, "phone.cn")
    assert "13812345678" not in repr(finding)
    assert finding.to_dict()["value"] == "138******78"
    assert finding.to_dict(reveal=True) == {
        "type": "PHONE",
        "value": "13812345678",
        "start": 0,
        "end": 11,
        "rule": "phone.cn",
    }


@given(st.text())
def test_normalisation_knows_where_every_code_point_came_from(text: str) -> None:
    plain = normalise(text)
    for index, char in enumerate(plain.text):
        start, end = plain.original_span(index, index + 1)
        assert end == start + 1
        source = text[start]
        assert char in unicodedata.normalize("NFKC", source) or char.isdigit() or char == "-"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("１３８", "138"),
        ("℡1", "TEL1"),
        ("a\u200bb", "ab"),
        ("٣—", "3-"),
        ("ﬁ①", "fi1"),
        ("中", "中"),
    ],
)
def test_normal_forms(text: str, plain: str) -> None:
    assert normalise(text).text == plain


# Runs that start a pattern again and again, fail late, or make a run of everything.
HOSTILE = [
    "1",
    "1 ",
    "1 " * 50 + "a ",
    "@",
    "a@",
    "a.",
    "a@" + "b." * 120,
    "@" + "a" * 63 + ".",
    ":",
    "aa:",
    "aa-",
    "1.",
    "passport" + " " * 500,
    "415-155-0132 x",
    "4111 1111 1111 1112 ",
    "110101 19900307 7476 ",
    "GB29 NWBK 6016 ",
    "(",
    "+1",
    "tel ",
    "１",
    "://@",
    "机密",
    "\u200b",
    "ﷺ",
]


@pytest.mark.parametrize("piece", HOSTILE, ids=ascii)
def test_the_largest_hostile_payload_ends(piece: str) -> None:
    size = Settings().max_payload_bytes
    detect((piece * (size // len(piece) + 1))[:size])


def test_half_a_character_is_no_reason_to_stop() -> None:
    (found,) = detect("a\ud800 13812345678")
    assert (found.start, found.value) == (3, "13812345678")
