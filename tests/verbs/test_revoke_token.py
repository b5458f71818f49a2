"""Revoke a token, so that it is refused from now on."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData, TokenNotFound
from fairlane.grant import Grant
from support.store import START_MS, Store


def test_it_is_told_as_revoked(store: Store) -> None:
    store.run(verbs.IssueToken(Grant("viewer"), 60_000, "t"))
    store.clock.advance(1_000)
    assert store.run(verbs.RevokeToken("t")) is True
    (listed,) = store.run(verbs.Tokens())
    assert listed.revoked_at_ms == START_MS + 1_000
    assert store.run(verbs.ReadRevocations()).revoked == (
        ("t", START_MS + 1_000, START_MS + 60_000),
    )


def test_one_of_another_issuer_is_revoked_until_its_end(store: Store) -> None:
    end_ms = START_MS + 5_000
    assert store.run(verbs.RevokeToken("theirs|7", end_ms)) is True
    (listed,) = store.run(verbs.Tokens())
    assert (listed.grant, listed.expires_at_ms) == (None, end_ms)
    assert 5_000 < store.redis.pttl(store.keys.name("REVOKED")) <= 65_000
    store.clock.advance(70_000)
    store.run(verbs.IssueToken(Grant("viewer"), 1_000, "other"))
    assert store.run(verbs.ReadRevocations()).revoked == ()


def test_what_is_unknown_or_over(store: Store) -> None:
    store.refuses(TokenNotFound, verbs.RevokeToken("unknown"))
    store.run(verbs.IssueToken(Grant("viewer"), 1_000, "t"))
    store.clock.advance(61_000)
    store.refuses(TokenNotFound, verbs.RevokeToken("t"))
    for token_id in ("", "a\nb", "x" * 129, 7):
        store.refuses(InvalidData, verbs.RevokeToken(token_id))  # type: ignore[arg-type]


def test_twice_answers_0_and_changes_nothing(store: Store) -> None:
    store.run(verbs.IssueToken(Grant("viewer"), 60_000, "t"))
    store.run(verbs.RevokeToken("t"))
    with store.unchanged():
        assert store.run(verbs.RevokeToken("t")) is False


def test_those_that_have_ended_are_forgotten(store: Store) -> None:
    store.run(verbs.IssueToken(Grant("viewer"), 1_000, "t"))
    store.clock.advance(62_000)
    store.run(verbs.RevokeToken("theirs|7", store.clock.now_ms + 5_000))
    assert store.redis.zrange(store.keys.name("TOKENS"), 0, -1) == ["theirs|7"]
