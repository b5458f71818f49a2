"""Celery's log does not say "succeeded" of a task that is dead."""

from __future__ import annotations

import logging

import pytest

from fairlane.celery.ends import EndOfAttempt

FORM = "Task %(name)s[%(id)s] succeeded in %(runtime)ss: %(return_value)s"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("execute_text_sensitive_job", "'dead'", "was recorded"),
        ("execute_text_sensitive_job", "'delayed'", "was recorded"),
        ("execute_text_sensitive_job", "'done'", "succeeded"),
        ("my.task", "'dead'", "succeeded"),
    ],
)
def test_what_the_line_says(name: str, value: str, says: str) -> None:
    told = {"name": name, "id": "x", "runtime": 1, "return_value": value}
    record = logging.LogRecord("celery.app.trace", logging.INFO, "", 1, FORM, (told,), None)
    assert EndOfAttempt().filter(record)
    assert f" {says} in 1s: {value}" in record.getMessage()
