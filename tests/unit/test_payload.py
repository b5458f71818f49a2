"""Data on its way to the store and back: equal, or refused before it is sent."""

from __future__ import annotations

import json
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.errors import InvalidData, PayloadTooLarge
from fairlane.payload import MAX_DEPTH, decode, encode

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_comes_back_is_what_went_in(data: dict[str, Any]) -> None:
    again = decode(encode("data", data, 10**6))
    assert repr(again) == repr(data), "1 is not 1.0, and True is not 1"


@pytest.mark.parametrize(
    "text",
    [
        '{"id":130775545883395173,"a":[],"f":1.0}',
        '{"big":123456789012345678901234567890,"small":5e-324,"e":1e+22,"neg":-0.0}',
        '{"empty":{},"null":null,"true":true,"nested":[[[]]]}',
        '{"mac":"x","task_id":7,"created_at":null,"__proto__":{"a":1}}',
        '{"text":"中文 🎉 שלום \\u0000 \\u2028"}',
    ],
)
def test_values_that_other_encoders_change(text: str) -> None:
    data = json.loads(text)
    assert repr(decode(encode("data", data, 10**6))) == repr(data)


def test_it_is_utf_8_without_spaces() -> None:
    assert encode("data", {"a": [1, "中"]}, 100) == '{"a":[1,"中"]}'.encode()


def test_other_mappings_are_objects_too() -> None:
    assert encode("data", MappingProxyType({"a": 1}), 100) == b'{"a":1}'
    assert encode("data", OrderedDict(a=OrderedDict(b=1)), 100) == b'{"a":{"b":1}}'
    assert encode("data", {"a": (1, 2)}, 100) == b'{"a":[1,2]}'


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"a": [{"b": {1, 2}}]}, r"data\.a\[0\]\.b: set"),
        ({"a": b"bytes"}, r"data\.a: bytes"),
        ({"a": {7: 1}}, "key 7 is int"),
        ({"a": float("nan")}, "NaN"),
        ({"a": "\ud800"}, "surrogate"),
        ([1], "list"),
    ],
)
def test_an_error_says_where_and_what(value: Any, told: str) -> None:
    with pytest.raises(InvalidData, match=told):
        encode("data", value, 100)


def test_the_deepest_that_may_be() -> None:
    def nested(levels: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for _ in range(levels - 1):
            value = {"a": value}
        return value

    assert decode(encode("data", nested(MAX_DEPTH), 10**6)) == nested(MAX_DEPTH)
    with pytest.raises(InvalidData, match="levels"):
        encode("data", nested(MAX_DEPTH + 1), 10**6)


@pytest.mark.parametrize(("letter", "size"), [("a", 1), ("é", 2), ("中", 3), ("🎉", 4)])
def test_the_limit_counts_bytes(letter: str, size: int) -> None:
    room = 10 * size + len('{"t":""}')
    encode("data", {"t": letter * 10}, room)
    with pytest.raises(PayloadTooLarge, match=f"{room} bytes, the limit is {room - 1}"):
        encode("data", {"t": letter * 10}, room - 1)


def test_no_bytes_are_an_empty_object() -> None:
    assert decode(b"") == {}
