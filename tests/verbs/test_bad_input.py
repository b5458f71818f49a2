"""What cannot be stored is a typed error, and nothing is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fairlane import verbs
from fairlane.errors import (
    FairlaneError,
    InvalidData,
    InvalidMac,
    InvalidTaskId,
    PayloadTooLarge,
    UnknownTaskType,
)
from support.store import LANE, Store, mac

HOSTILE = (
    "",
    " ",
    "../../etc/passwd",
    "a b",
    "a\nb",
    "a\x00b",
    "-a",
    ":a",
    "x" * 129,
    "x" * 10_000,
    "{tag}",
    "中",
    "a*",
    "\ud800",
)
MACS = (
    "",
    "nonsense",
    "02:00:00:00:00",
    "02:00:00:00:00:0",
    "02:00:00:00:00:01\n",
    " 02:00:00:00:00:01",
    "02:00:00:00:00-01",
    "0200.0000:0001",
    "2:0:0:0:0:1",
    "０2:00:00:00:00:01",
    "01:00:5e:00:00:01",
    "ff:ff:ff:ff:ff:ff",
    "00:00:00:00:00:00",
    "00:00:00:00:00:00:00:00",
    "02:00:00:00:00:01:02",
    "g2:00:00:00:00:01",
    "x" * 100_000,
    "\ud800",
    None,
    7,
    b"02:00:00:00:00:01",
)


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def circular() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = [value]
    return value


DATA: tuple[Any, ...] = (
    None,
    "text",
    7,
    ["list"],
    b"bytes",
    {"x": float("nan")},
    {"x": [float("inf")]},
    {"x": {"y": float("-inf")}},
    {1: "number"},
    {None: 1},
    {"x": {1: "nested"}},
    {"x": [{True: 1}]},
    {"x": b"bytes"},
    {"x": {1, 2}},
    {"x": object()},
    {"x": "\ud800"},
    {"\udfff": 1},
    deep(33),
    deep(100_000),
    circular(),
    {"x": 10**5_000},
)


@pytest.fixture(autouse=True)
def _nothing_is_stored(store: Store) -> Iterator[None]:
    before = store.digest()
    yield
    assert store.digest() == before


def refused(error: type[FairlaneError], store: Store, *args: Any, **options: Any) -> None:
    for enqueue in (store.client.enqueue, in_a_batch(store)):
        with pytest.raises(error) as raised:
            enqueue(*args, **options)
        assert type(raised.value) is error
        assert str(raised.value).isprintable()
        assert len(str(raised.value)) < 400


def in_a_batch(store: Store) -> Any:
    def enqueue(*args: Any, **options: Any) -> Any:
        good = verbs.Enqueue(mac(1), LANE, {})
        return store.client.enqueue_many([good, verbs.Enqueue(*args, **options)])

    return enqueue


@pytest.mark.parametrize("address", MACS, ids=lambda value: ascii(value)[:24])
def test_a_malformed_mac(store: Store, address: Any) -> None:
    refused(InvalidMac, store, address, LANE, {})


@pytest.mark.parametrize("data", DATA, ids=range(len(DATA)))
def test_data_that_is_no_object_of_plain_values(store: Store, data: Any) -> None:
    refused(InvalidData, store, mac(1), LANE, data)


@pytest.mark.parametrize("task_id", [*HOSTILE, 7, b"a"], ids=lambda value: ascii(value)[:24])
def test_a_hostile_task_id(store: Store, task_id: Any) -> None:
    refused(InvalidTaskId, store, mac(1), LANE, {}, task_id=task_id)
    with pytest.raises(InvalidTaskId):
        store.client.task(task_id)
    with pytest.raises(InvalidTaskId):
        store.client.cancel(task_id)


@pytest.mark.parametrize("kind", ["", "video", "OCR", "text ", "\ud800", None, 7, ["text"], {}])
def test_an_unknown_task_type(store: Store, kind: Any) -> None:
    refused(UnknownTaskType, store, mac(1), kind, {})


@pytest.mark.parametrize("ttl_ms", [0, -1, 604_800_001, 1.5, True, "1000", float("nan"), 10**30])
def test_a_ttl_that_is_none(store: Store, ttl_ms: Any) -> None:
    refused(InvalidData, store, mac(1), LANE, {}, ttl_ms=ttl_ms)


def test_a_payload_over_the_limit_by_one_byte(store: Store) -> None:
    room = store.settings.max_payload_bytes - len('{"x":""}')
    refused(PayloadTooLarge, store, mac(1), LANE, {"x": "a" * (room + 1)})
    refused(PayloadTooLarge, store, mac(1), LANE, {"x": "中" * (room // 3 + 1)})


@pytest.mark.parametrize("after", ["x", "", "1-2-3", "-1", "9" * 20, "\ud800", None])
def test_what_is_no_event_id(store: Store, after: Any) -> None:
    with store.unchanged(), pytest.raises(InvalidData, match="event id"):
        store.client.events(after)


@pytest.mark.parametrize(
    "verb",
    [
        verbs.Cancel("a", force=10**5000),  # type: ignore[arg-type]
        verbs.Start("a", 10**5000, "w", "r"),
        verbs.Finish("a", True),
        verbs.Fail("a", 1, "c", final=1.5),  # type: ignore[arg-type]
        verbs.Configure(mac(1), paused=-1),  # type: ignore[arg-type]
        verbs.Heartbeat("w", [LANE], 1.5),  # type: ignore[arg-type]
        verbs.Heartbeat("w", [LANE], 1, report={str(n): "" for n in range(65)}),
        verbs.Lead("w", 0),
        verbs.Purge(10**5000),
        verbs.Claim(LANE, 1, holder=None),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_no_sense(store: Store, verb: Any) -> None:
    store.refuses(InvalidData, verb)
