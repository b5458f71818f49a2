"""Jain's index over the devices that waited."""

from __future__ import annotations

import pytest

from fairlane.http.shares import APART_S, Shares, jain
from fairlane.model import Share


def test_it_is_one_when_all_got_the_same_and_one_nth_when_one_got_all() -> None:
    assert jain([3.0, 3.0, 3.0]) == 1.0
    assert jain([7.0, 0.0, 0.0, 0.0]) == 0.25


def test_what_was_used_between_two_looks_counts_by_weight() -> None:
    now = [100.0]
    shares = Shares(lambda: now[0])
    assert shares.index([Share("text", "a", 1.0, 500), Share("text", "b", 3.0, 0)]) == {}
    now[0] += APART_S
    second = [Share("text", "a", 1.0, 600), Share("text", "b", 3.0, 300)]
    assert shares.index(second) == {"text": pytest.approx(1.0)}
    now[0] += APART_S
    third = [Share("text", "a", 1.0, 700), Share("text", "b", 3.0, 300)]
    assert shares.index(third) == {"text": pytest.approx(0.5)}


def test_who_came_went_or_began_anew_is_not_compared() -> None:
    now = [100.0]
    shares = Shares(lambda: now[0])
    shares.index([Share("text", name, 1.0, 100) for name in "abcd"])
    now[0] += APART_S
    # b went, c had nothing left meanwhile, e came.
    used_by = {"a": 150, "c": 20, "d": 150, "e": 900}
    second = [Share("text", name, 1.0, used) for name, used in used_by.items()]
    assert shares.index(second) == {"text": 1.0}


def test_a_look_too_soon_gets_the_last_answer_and_is_not_remembered() -> None:
    now = [100.0]
    shares = Shares(lambda: now[0])
    first = [Share("text", name, 1.0, 0) for name in "ab"]
    shares.index(first)
    now[0] += 1
    assert shares.index([Share("text", name, 1.0, 50) for name in "ab"]) == {}
    now[0] += APART_S
    later = [Share("text", "a", 1.0, 100), Share("text", "b", 1.0, 0)]
    assert shares.index(later) == {"text": 0.5}


def test_a_lane_where_nothing_ran_or_one_waits_has_no_index() -> None:
    now = [100.0]
    shares = Shares(lambda: now[0])
    alone = [Share("text", "a", 1.0, 0), Share("ocr", "a", 1.0, 5), Share("ocr", "b", 1.0, 5)]
    shares.index(alone)
    now[0] += APART_S
    assert shares.index([*alone, Share("text", "b", 1.0, 3)]) == {}
