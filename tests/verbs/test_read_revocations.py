"""Read which tokens were revoked since a time, and what time it is."""

from __future__ import annotations

from fairlane import verbs
from fairlane.errors import InvalidData
from fairlane.grant import Grant
from support.store import START_MS, Store


def _revoke(store: Store, count: int) -> None:
    for n in range(count):
        store.client.run(verbs.IssueToken(Grant("viewer"), 60_000, f"t{n}"))
        store.client.run(verbs.RevokeToken(f"t{n}"))


def test_returns_the_clock_and_the_revoked_oldest_first(store: Store) -> None:
    assert store.run(verbs.ReadRevocations()).now_ms == START_MS
    _revoke(store, 3)
    read = store.run(verbs.ReadRevocations())
    assert [token_id for token_id, _, _ in read.revoked] == ["t0", "t1", "t2"]
    assert all(end == START_MS + 60_000 for _, _, end in read.revoked)


def test_no_two_are_of_one_moment_so_reading_on_misses_none(store: Store) -> None:
    _revoke(store, 5)
    seen: list[str] = []
    since_ms = 0
    while page := store.run(verbs.ReadRevocations(since_ms, 2)).revoked:
        seen += [token_id for token_id, _, _ in page]
        since_ms = page[-1][1] + 1
    assert seen == ["t0", "t1", "t2", "t3", "t4"]


def test_what_cannot_be_asked(store: Store) -> None:
    for since, limit in ((-1, 1), (0, 0), (0, 1_001)):
        store.refuses(InvalidData, verbs.ReadRevocations(since, limit))


def test_twice_reads_again(store: Store) -> None:
    _revoke(store, 1)
    with store.unchanged():
        assert store.run(verbs.ReadRevocations()) == store.run(verbs.ReadRevocations())
