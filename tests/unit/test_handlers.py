"""Which function runs which task type: one, and the user's own before the shipped one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fairlane import Task, handler, handlers
from fairlane.errors import InvalidHandler, UnknownTaskType


@pytest.fixture(autouse=True)
def _nothing_registered_stays() -> Iterator[None]:
    before = dict(handlers._registered)
    handlers._registered.clear()
    yield
    handlers._registered.clear()
    handlers._registered.update(before)


def one(task: Task) -> dict[str, Any]:
    return {"by": "one", "task": task.task_id}


def other(task: Task) -> None:
    """Do nothing."""


def test_a_registered_function_is_found_and_stays_a_plain_function() -> None:
    assert handler("video")(one) is one
    assert handlers.find("video") is one


def test_the_users_own_goes_before_the_shipped_one() -> None:
    handler("text")(one)
    assert handlers.find("text") is one


def test_the_shipped_ones_are_found_by_their_entry_points() -> None:
    assert handlers.find("text").__module__.startswith("fairlane.detect")
    assert handlers.find("text") is handlers.find("text")


def test_installed_packages_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look opens the files of every package, and /readyz asked for each lane each time."""
    asked: list[str] = []
    handlers._installed.cache_clear()

    def none(group: str) -> tuple[()]:
        asked.append(group)
        return ()

    monkeypatch.setattr(handlers, "entry_points", none)
    try:
        assert not handlers.serves("text")
        assert not handlers.serves("ocr")
        assert asked == [handlers.GROUP]
    finally:
        handlers._installed.cache_clear()


def test_two_functions_for_one_type() -> None:
    handler("video")(one)
    with pytest.raises(InvalidHandler, match=r"test_handlers\.one serves it already"):
        handler("video")(other)
    assert handlers.find("video") is one


def test_the_same_function_twice_is_no_conflict() -> None:
    handler("video")(one)
    handler("video")(one)


def test_what_is_no_function() -> None:
    with pytest.raises(InvalidHandler, match="not callable"):
        handler("video")("text")  # type: ignore[type-var]


def test_an_unknown_type_names_those_that_are_served() -> None:
    handler("video")(one)
    with pytest.raises(UnknownTaskType, match=r"no handler for 'audio'; .*ocr, text, video"):
        handlers.find("audio")
