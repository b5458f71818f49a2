"""List the tokens that have not expired, those that end first before the others."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData
from fairlane.grant import Grant
from support.store import Store


def test_pages_in_the_order_of_their_ends(store: Store) -> None:
    for ttl_ms in (3_000, 1_000, 2_000):
        store.run(verbs.IssueToken(Grant("operator", name="ö"), ttl_ms, f"t{ttl_ms}"))
    ids = [token.token_id for token in store.run(verbs.Tokens())]
    assert ids == ["t1000", "t2000", "t3000"]
    assert [token.token_id for token in store.run(verbs.Tokens(1, 1))] == ["t2000"]
    store.clock.advance(1_500)
    assert [token.token_id for token in store.run(verbs.Tokens())] == ["t2000", "t3000"]


def test_what_cannot_be_asked(store: Store) -> None:
    for offset, limit in ((-1, 1), (0, 0), (0, 1_001)):
        store.refuses(InvalidData, verbs.Tokens(offset, limit))


def test_twice_reads_again(store: Store) -> None:
    store.run(verbs.IssueToken(Grant("viewer"), 1_000))
    with store.unchanged():
        assert store.run(verbs.Tokens()) == store.run(verbs.Tokens())
