"""Logs: one JSON object a line with what was bound, and no secret in any."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from fairlane import Settings
from fairlane.logs import bind, bound, configure, masking
from fairlane.settings.mask import MASK

log = logging.getLogger("fairlane.test")
SECRET = "s" * 40


@pytest.fixture
def lines() -> Iterator[Any]:
    """Give what configures the root logger and returns a reader of its lines; undo it after."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers[:] = []

    def begin(**settings: Any) -> io.StringIO:
        stream = io.StringIO()
        configure(Settings(**settings), "api", "info", stream)
        return stream

    yield begin
    root.handlers[:] = before
    root.setLevel(level)


def told(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_of_json_tells_when_who_and_what_was_bound(lines: Any) -> None:
    stream = lines(log_format="json")
    with bound(task_id="t1", attempt=2):
        log.warning("the end of %s", "it", extra={"mac": "m"})
    log.info("after")
    first, second = told(stream)
    assert first.pop("timestamp").endswith("Z")
    assert first == {
        "event": "the end of it", "level": "warning", "logger": "fairlane.test", "role": "api",
        "task_id": "t1", "attempt": 2, "mac": "m",
    }  # fmt: skip
    assert "task_id" not in second


def test_a_traceback_is_in_its_line(lines: Any) -> None:
    stream = lines(log_format="json")
    try:
        raise ValueError("boom\nof two lines")
    except ValueError:
        log.exception("it failed")
    (line,) = told(stream)
    assert "ValueError: boom" in line["exception"]


def test_text_is_for_people_and_tells_what_was_bound_too(lines: Any) -> None:
    stream = lines()
    with bound(request_id="r1"):
        log.warning("no JSON")
    log.warning("nothing bound")
    assert stream.getvalue().splitlines() == [
        "WARNING fairlane.test: no JSON [request_id=r1]",
        "WARNING fairlane.test: nothing bound",
    ]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_line_has_a_secret(lines: Any, log_format: str) -> None:
    stream = lines(
        log_format=log_format, token_secret=SECRET, store_url="redis://user:hunter22@db:6379/0"
    )
    jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
    try:
        raise ValueError(f"key {SECRET}")
    except ValueError:
        log.exception("to redis://user:hunter22@db:6379/0, Bearer %s, /?token=%s&x=1", jwt, jwt)
    log.warning("amqp://me:other-password@broker and %s and hunter22", jwt)
    written = stream.getvalue()
    for secret in (SECRET, "hunter22", "other-password", jwt, jwt.split(".")[2]):
        assert secret not in written
    assert "db:6379/0" in written
    assert "x=1" in written
    if log_format == "json":
        assert len(told(stream)) == 2


@pytest.mark.parametrize(
    "said",
    [
        "to redis://db/0?pass%77ord={}",
        "s3://bucket/files?region=x&secret_access_key={}&endpoint=y",
        "s3://bucket?SECRET%5FACCESS%5FKEY={}",
        "redis+sentinel://a/x?sentinel_password={}&db=1",
        "https://blob?account_key={} and https://x?api-key={}&sig=1",
        "GET /?token={}",
        "PASSWD={}",
        "access_token={} for x",
        "amqp://me:{}@broker",
    ],
)
def test_a_secret_is_known_by_any_spelling_of_its_name(said: str) -> None:
    secret = "abcd1234/Q%2B"
    said = said.replace("{}", secret if "://me:" not in said else "abcd1234")
    hidden = masking(Settings())(said)
    assert "abcd1234" not in hidden
    assert MASK in hidden
    kept = [word for word in ("db/0?pass%77ord=", "&endpoint=y", "&db=1", "&sig=1") if word in said]
    assert all(word in hidden for word in kept)


def test_a_secret_of_a_setting_is_known_wherever_it_stands() -> None:
    """As it stands in the URL, and as a driver reads it and tells of it."""
    mask = masking(
        Settings(
            store_url="redis://me:p%40ss-word@db/0",
            files_url="s3://bucket?secret%5Faccess_key=ab%2Fcd%2Bef",
        )
    )
    for secret in ("p%40ss-word", "p@ss-word", "ab%2Fcd%2Bef", "ab/cd+ef"):
        assert secret not in mask(f"they said {secret} here")


def test_a_long_word_is_looked_at_once() -> None:
    """A line without an end that a caller chose keeps nobody waiting."""
    assert masking(Settings())("a%" * 200_000) == "a%" * 200_000


@pytest.mark.parametrize(
    "said",
    ['GET /password=a"b 401', 'secret=a","level":"x', "password=\\", "?sentinel_password=hunter22"],
)
def test_a_masked_line_is_still_json(lines: Any, said: str) -> None:
    stream = lines(log_format="json")
    log.warning("%s", said, extra={"parts": [said, {"of": said}]})
    (line,) = told(stream)
    assert "***" in line["event"]
    assert "hunter22" not in stream.getvalue()


def test_what_is_no_secret_stays() -> None:
    mask = masking(Settings())
    for text in (
        "redis://127.0.0.1:6379/0",
        "bearer of news",
        "passenger=1",
        "tokens=3",
        "key=x",
        "token_audience=fairlane",
        "compass=2",
        "at 12:30@noon",
        "eyJ",
        "a:b@c",
    ):
        assert mask(text) == text


def test_bound_twice_is_the_later_one(lines: Any) -> None:
    stream = lines(log_format="json")
    with bound(request_id="a"):
        bind(request_id="b")
        log.info("here")
    assert told(stream)[0]["request_id"] == "b"
