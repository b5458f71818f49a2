"""List a page of the members of a set or list."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import verbs
from fairlane.errors import InvalidData, InvalidMac, UnknownLane
from fairlane.verbs.repair import PLACES
from support.store import LANE, Store, mac


@pytest.mark.parametrize("place", PLACES)
def test_every_place_can_be_listed(store: Store, place: str) -> None:
    lane = LANE if PLACES[place] else ""
    owner = mac(1) if place == "queue" else ""
    assert store.run(verbs.Members(place, lane, owner)) == (0, ())


def test_a_page_at_a_time(store: Store) -> None:
    ids = store.enqueue(1, 5)
    for offset, page in ((0, ids[:2]), (2, ids[2:4]), (4, ids[4:]), (6, [])):
        found = store.run(verbs.Members("queue", LANE, mac(1), offset, 2))
        assert found == (5, tuple(page))


def test_what_is_where(store: Store) -> None:
    (task,) = store.enqueue(1, site="lab")
    for place, lane, owner, members in (
        ("macs", "", "", (mac(1),)),
        ("deadlines", "", "", (task,)),
        ("waiting", LANE, "", (mac(1),)),
        ("sites", LANE, "", ("lab",)),
        ("schedule", LANE, "lab", (mac(1),)),
        ("schedule", LANE, "default", ()),
    ):
        assert store.run(verbs.Members(place, lane, owner))[1] == members
    store.claim(1)
    assert store.run(verbs.Members("inflight", LANE))[1] == (task,)


def test_a_set_has_no_order_and_no_second_page(store: Store) -> None:
    names = {mac(at) for at in range(5)}
    store.redis.sadd(store.keys.name("OVERLOADED"), *names)
    store.is_spoilt = True
    count, members = store.run(verbs.Members("overloaded", limit=10))
    assert (count, set(members)) == (5, names)
    assert store.run(verbs.Members("overloaded", offset=5, limit=10)) == (5, ())


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("nowhere",), InvalidData),
        (("waiting", "no-lane"), UnknownLane),
        (("queue", LANE, "nobody"), InvalidMac),
        (("schedule", LANE, "A B"), InvalidData),
        (("macs", "", "", -1), InvalidData),
        (("macs", "", "", 0, 1_001), InvalidData),
    ],
    ids=str,
)
def test_what_cannot_be_listed(store: Store, arguments: tuple[Any, ...], error: Any) -> None:
    store.refuses(error, verbs.Members(*arguments))
