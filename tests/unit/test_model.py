"""The verdicts on a task: values that compare, print and travel, and do not change."""

from __future__ import annotations

import copy
import pickle

import pytest

from fairlane import Receipt, Refusal, TaskState

RECEIPT = Receipt("a", "02:00:00:00:00:01", 1, pending=2)
REFUSAL = Refusal("a", "02:00:00:00:00:01", "device_full", 200, 200, 1_000)


@pytest.mark.parametrize("verdict", [RECEIPT, REFUSAL], ids=["receipt", "refusal"])
def test_a_verdict_is_a_value(verdict: Receipt | Refusal) -> None:
    for again in (pickle.loads(pickle.dumps(verdict)), copy.copy(verdict)):
        assert again == verdict
        assert hash(again) == hash(verdict)
    with pytest.raises(AttributeError):
        verdict.task_id = "b"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        setattr(verdict, "note", "b")  # noqa: B010


def test_a_new_task_is_pending_and_was_not_known() -> None:
    assert (RECEIPT.state, RECEIPT.known) == (TaskState.PENDING, False)


def test_they_say_what_they_are() -> None:
    assert repr(RECEIPT) == (
        "Receipt(task_id='a', mac='02:00:00:00:00:01', created_at_ms=1, pending=2, "
        "state=<TaskState.PENDING: 'pending'>, known=False)"
    )
