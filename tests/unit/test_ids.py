"""Task ids: UUIDv7, sortable, and nothing in them that a key or a path would mind."""

from __future__ import annotations

import functools
import subprocess
import sys
import time
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.errors import InvalidTaskId
from fairlane.ids import checked_task_id, new_nonce, new_task_id, new_task_ids


def test_an_id_is_a_uuid_of_version_7() -> None:
    for _ in range(200):
        text = new_task_id()
        value = uuid.UUID(text)
        assert str(value) == text
        assert (value.version, value.variant) == (7, uuid.RFC_4122)


@pytest.mark.parametrize("count", [0, 1, 2, 257, 1_000])
def test_many_at_once_are_the_same_kind(count: int) -> None:
    before = new_task_id()
    made = new_task_ids(count)
    assert len(set(made)) == len(made) == count
    for text in made:
        value = uuid.UUID(text)
        assert (str(value), value.version, value.variant) == (text, 7, uuid.RFC_4122)
        assert value.int >> 80 >= uuid.UUID(before).int >> 80


def test_ids_sort_by_the_time_they_were_made() -> None:
    before = time.time_ns() // 1_000_000
    made = [new_task_id() for _ in range(1_000)]
    after = time.time_ns() // 1_000_000
    times = [uuid.UUID(text).int >> 80 for text in made]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= after


def test_no_two_are_alike() -> None:
    assert len({new_task_id() for _ in range(10_000)}) == 10_000
    assert len({new_nonce() for _ in range(10_000)}) == 10_000


def test_74_of_their_bits_are_random() -> None:
    free = (1 << 76) - 1 & ~(0b11 << 62)  # all but time, version and variant
    values = [uuid.UUID(new_task_id()).int for _ in range(1_000)]
    assert functools.reduce(int.__or__, values) & free == free
    assert functools.reduce(int.__and__, values) & free == 0


FORK = """
import os
from fairlane.ids import new_task_id
new_task_id()
if child := os.fork():
    os.waitpid(child, 0)
print("\\n".join(new_task_id()[14:] for _ in range(300)), flush=True)
"""


def test_two_processes_of_one_fork_hand_out_different_ones() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    tails = done.stdout.split()
    assert len(tails) == len(set(tails)) == 600


def test_an_id_of_ours_may_be_sent() -> None:
    made = new_task_id()
    assert checked_task_id(made) == made
    assert checked_task_id(new_nonce())


@pytest.mark.parametrize("text", ["a", "A1", "order-7", "2024.01.01_x:y", "x" * 128])
def test_what_a_caller_may_choose(text: str) -> None:
    assert checked_task_id(text) == text


@pytest.mark.parametrize(
    "value",
    ["", " ", ".", "..", "../a", "a/b", "a b", "a\n", "-a", "_a", "x" * 129, "é", "a\x00", "{a}"],
)
def test_what_a_caller_may_not(value: str) -> None:
    with pytest.raises(InvalidTaskId) as raised:
        checked_task_id(value)
    assert str(raised.value).isascii()
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("value", [None, 7, b"a", ["a"]])
def test_an_id_is_a_text(value: Any) -> None:
    with pytest.raises(InvalidTaskId):
        checked_task_id(value)


@given(st.text(max_size=20))
def test_nothing_gets_through_that_separates_words(text: str) -> None:
    try:
        checked_task_id(text)
    except InvalidTaskId:
        return
    assert text.isascii()
    assert not set(text) & set(" /\\*?{}[]|\n\t\x00")
