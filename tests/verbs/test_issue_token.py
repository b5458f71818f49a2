"""Record a token that is issued, until it expires."""

from __future__ import annotations

import pytest

from fairlane import verbs
from fairlane.errors import InvalidData, InvalidMac, InvalidTaskId, InvalidToken
from fairlane.grant import Grant, IssuedToken
from support.store import START_MS, Store, mac

DAY_MS = 24 * 3_600_000


def test_returns_the_token_with_its_times_by_the_stores_clock(store: Store) -> None:
    grant = Grant("device", mac(1).upper(), "lab", "gate 4")
    issued = store.run(verbs.IssueToken(grant, DAY_MS, "t1"))
    assert issued == IssuedToken("t1", grant, START_MS, START_MS + DAY_MS, 0)
    assert issued.grant is not None
    assert issued.grant.mac == mac(1)
    assert store.run(verbs.Tokens()) == (issued,)


def test_it_is_forgotten_after_its_end(store: Store) -> None:
    before = set(store.redis.keys())
    for n in range(3):
        store.run(verbs.IssueToken(Grant("viewer"), 1_000, f"t{n}"))
    store.run(verbs.RevokeToken("t1"))
    store.clock.advance(62_000)
    store.run(verbs.IssueToken(Grant("viewer"), 1_000, "last"))
    assert [token.token_id for token in store.run(verbs.Tokens())] == ["last"]
    assert store.redis.zrange(store.keys.name("TOKENS"), 0, -1) == ["last"]
    assert set(store.redis.keys()) - before == {
        store.keys.name("TOKENS"), store.keys.name("TOKEN") + "last"
    }  # fmt: skip
    lives = [store.redis.pttl(name) for name in set(store.redis.keys()) - before]
    assert all(0 < ms <= 61_000 for ms in lives), "and by itself when nobody issues another"


def test_the_list_of_tokens_lasts_as_long_as_the_longest(store: Store) -> None:
    store.run(verbs.IssueToken(Grant("viewer"), DAY_MS))
    store.run(verbs.IssueToken(Grant("viewer"), 1_000))
    assert store.redis.pttl(store.keys.name("TOKENS")) > DAY_MS


def test_what_cannot_be_issued(store: Store) -> None:
    for ttl_ms in (0, -1, 3_661 * DAY_MS, 1.5, True):
        store.refuses(InvalidData, verbs.IssueToken(Grant("viewer"), ttl_ms))  # type: ignore[arg-type]
    store.refuses(InvalidTaskId, verbs.IssueToken(Grant("viewer"), 1, "a b"))
    with pytest.raises(InvalidMac):
        Grant("device", "nobody")
    for role, address, site, name in (
        ("root", "", "", ""), ("", "", "", ""), ("device", "", "", ""), ("viewer", mac(1), "", ""),
        ("viewer", "", "lab", ""), ("producer", "", "../lab", ""), ("viewer", "", "", "a\nb"),
        ("viewer", "", "", "x" * 129),
    ):  # fmt: skip
        with pytest.raises(InvalidToken):
            Grant(role, address, site, name)  # type: ignore[arg-type]


def test_twice_answers_the_same_and_changes_nothing(store: Store) -> None:
    verb = verbs.IssueToken(Grant("viewer"), DAY_MS, "t")
    first = store.run(verb)
    store.clock.advance(5_000)
    with store.unchanged():
        assert store.run(verb) == first
