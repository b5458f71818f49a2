"""What enqueue and enqueue_many send, without a store: arguments, their order and their bounds."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from fairlane import Settings
from fairlane.client.calls import batches
from fairlane.errors import (
    FairlaneError,
    InvalidData,
    InvalidInput,
    InvalidMac,
    PayloadTooLarge,
    UnknownTaskType,
)
from fairlane.site import SiteRule
from fairlane.verbs import Enqueue, EnqueueMany
from fairlane.verbs.accept import Item

MAC = "02:00:00:00:00:01"
OTHER = "02:00:00:00:00:02"


def test_an_enqueue_sends_ten_arguments() -> None:
    usual = Enqueue("02-00-00-00-00-01", "text", {}, task_id="b")
    assert usual.args(Settings()) == ("b", MAC, "text", "text", b"{}", 0, 0, "", "", "")


def test_ids_of_a_batch_are_of_the_usual_kind() -> None:
    args = EnqueueMany([(MAC, "text", {"n": n}) for n in range(5)]).args(Settings())
    assert len({uuid.UUID(str(task_id)) for task_id in args[6::3]}) == 5


def test_the_order_of_the_items_stays() -> None:
    batch = [
        Enqueue(MAC, "text", {}, task_id="a"),
        Enqueue(OTHER, "text", {}, task_id="b"),
        Enqueue(MAC, "ocr", {}, task_id="c"),
        Enqueue(MAC, "text", {}, task_id="d", ttl_ms=1),
    ]
    assert EnqueueMany(batch).args(Settings()) == [
        *("text", "text", 0, 0, "", 2, "a", MAC, b"{}", "b", OTHER, b"{}"),
        *("ocr", "ocr", 0, 0, "", 1, "c", MAC, b"{}"),
        *("text", "text", 1, 0, "", 1, "d", MAC, b"{}"),
    ]


def test_a_site_is_the_given_one_or_that_of_the_longest_prefix() -> None:
    rules = (SiteRule("02", "all"), SiteRule("02:00:00:00:00", "few"), SiteRule("04", "else"))
    settings = Settings(sites=rules)
    batch = EnqueueMany([(MAC, "text", {}), Enqueue(MAC, "text", {}, site="own", cost_ms=9)])
    assert batch.args(settings)[:5] == ["text", "text", 0, 0, "few"]
    assert batch.args(settings)[9:14] == ["text", "text", 0, 9, "own"]
    assert Enqueue(MAC, "text", {}).args(settings)[-3] == "few"


@pytest.mark.parametrize("site", ["", "A", "a b", "-a", "a" * 65, "a@b", "a:b", "ä", 7, b"a"])
def test_another_site(site: str) -> None:
    with pytest.raises(InvalidData, match=r"site: .*use 1 to 64 of"):
        Enqueue(MAC, "text", {}, site=site)


@pytest.mark.parametrize("cost_ms", [0, -1, 1.5, True, "7", 7 * 24 * 3_600_000 + 1])
def test_another_cost(cost_ms: int) -> None:
    with pytest.raises(InvalidData, match=r"cost_ms: .*send 1 to"):
        Enqueue(MAC, "text", {}, cost_ms=cost_ms)


def test_an_item_is_a_tuple_a_mapping_or_an_enqueue() -> None:
    named = {"mac": MAC, "task_type": "text", "data": {}, "task_id": "b", "ttl_ms": 7}
    batch = EnqueueMany([Enqueue(MAC, "text", {}, task_id="a"), named, (MAC, "text", {})])
    args = batch.args(Settings())
    assert args[:9] == ["text", "text", 0, 0, "", 1, "a", MAC, b"{}"]
    assert args[9:18] == ["text", "text", 7, 0, "", 1, "b", MAC, b"{}"]


def test_a_batch_is_the_same_each_time_it_is_sent() -> None:
    batch = EnqueueMany((MAC, "text", {"n": n}) for n in range(3))
    assert batch.args(Settings()) == batch.args(Settings())


@pytest.mark.parametrize(
    "item",
    [
        (MAC, "text"),
        (MAC, "text", {}, "more"),
        {"mac": MAC, "task_type": "text"},
        {"mac": MAC, "task_type": "text", "data": {}, "colour": "red"},
        7,
        None,
    ],
    ids=str,
)
def test_an_item_that_is_none(item: Any) -> None:
    good: Item = (MAC, "text", {})
    for batch in ([item], [good, item], [Enqueue(MAC, "text", {}), item]):
        with pytest.raises(InvalidData, match="items"):
            EnqueueMany(batch)


@pytest.mark.parametrize(
    ("item", "error"),
    [
        (("nonsense", "text", {}), InvalidMac),
        ((MAC, "video", {}), UnknownTaskType),
        ((MAC, ["text"], {}), UnknownTaskType),
        ((MAC, "text", {"a": {1}}), InvalidData),
        ((MAC, "text", {"a": "x" * 256 * 1024}), PayloadTooLarge),
    ],
    ids=["mac", "type", "no type", "data", "size"],
)
def test_a_bad_item_raises_what_enqueue_raises(item: Any, error: type[FairlaneError]) -> None:
    good: Item = (MAC, "text", {})
    for batch in ([item], [good, item], [Enqueue(MAC, "text", {}), item]):
        with pytest.raises(error):
            EnqueueMany(batch).args(Settings())
    with pytest.raises(error):
        Enqueue(*item).args(Settings())


@pytest.mark.parametrize(
    "bad",
    [
        ("zz", "text", {}),
        (MAC, "unknown", {}),
        (MAC, "text", {"t": "x" * 2_000}),
        (MAC, "text", {"t": float("nan")}),
        {"mac": MAC, "task_type": "text", "data": {}, "ttl_ms": 0},
        {"mac": MAC, "task_type": "unknown", "data": {}, "idempotency_key": "k"},
        {"mac": MAC, "task_type": "text"},
        "no item",
    ],
    ids=lambda bad: ascii(bad)[:40],
)
def test_a_bad_item_is_named_by_its_number(bad: Any) -> None:
    """Of a thousand items, one has to be found; its number is that of the caller's list."""
    settings = Settings(max_payload_bytes=1_000)
    for at, count in ((0, 1), (7, 10), (137, 200)):
        items: list[Any] = [(MAC, "text", {})] * count
        items[at] = bad
        with pytest.raises(InvalidInput, match=rf"^items\[{at}\]: "):
            [call.args(settings) for call in batches(items, settings)]
