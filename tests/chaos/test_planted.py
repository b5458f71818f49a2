"""The stateful proof finds a fault: each of these, planted in the Lua, breaks a promise.

The rule: a fault is one expression of one line, as somebody might write it; the real scripts with
the fault are run by the same programs as in `make test`, and the proof must fail.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from fairlane import scripts
from model.test_machine import EXAMPLES, prove
from support.servers import Server

#: Where, what stands there, what is planted, and the configuration that may find it.
FAULTS: dict[str, tuple[str, str, str, str]] = {
    "another run starts a running task": (
        "start", "f[1] == 'running' and f[3] == run_id", "f[1] == 'running'", "fair"),
    "an older attempt counts": (
        "_task", "current ~= attempt", "tonumber(current or 0) < tonumber(attempt)", "fair"),
    "one more than max_running": (
        "_limits", "d.max_running - d.whole.leased", "d.max_running - d.whole.leased + 1", "fair"),
    "half a token is one": (
        "_limits", "missing > 0.000001", "missing > 0.5", "fair"),
    "tokens are not spent": (
        "_limits", "tokens_left(d) - n)", "tokens_left(d))", "fair"),
    "whoever comes back owes nothing": (
        "_tags", "if not tag or tag <= v then", "if true then", "fair"),
    "a refund is a credit": (
        "_tags", "math.max(to, math.min(tag, v))", "to", "fair"),
    "the weight is not asked": (
        "_cost", "math.max(1, math.floor(cost / d.weight))", "math.max(1, cost / 60)", "fair"),
    "the last is first": (
        "_order", "call('ZREVRANGE', schedule, 0, 1, 'WITHSCORES')",
        "call('ZRANGE', schedule, 0, 1, 'WITHSCORES')", "fair"),
    "a paused device is let in": (
        "_order", "if d.paused or not d.has_queue", "if not d.has_queue", "fair"),
    "expired at its deadline": (
        "_turn", "  if now > expires then\n    conclude", "  if now >= expires then\n    conclude",
        "aging"),
    "what comes back goes to the other end": (
        "_device", "next and C.order == 'fifo' and", "not next and C.order == 'fifo' and", "fair"),
    "the backoff is twice too long": (
        "_turn", "base * 2 ^ math.min(n - 1, 31)", "base * 2 ^ math.min(n, 31)", "fair"),
    "a lost start does not count": (
        "sweep", "local failures = (num(f[4]) or 0) + 1",
        "local failures = (num(f[4]) or 0)", "fair"),
    "one attempt too many": (
        "fail", "elseif failures >= C.max_attempts", "elseif failures > C.max_attempts", "fair"),
    "one defer too few": (
        "defer", "if defers > C.max_defers", "if defers >= C.max_defers", "seed"),
    "one task over the limit": (
        "_admission", "if count >= limit then", "if count > limit then", "fair"),
    "the low mark is one too high": (
        "_admission", "was_full and count > low", "was_full and count > low + 1", "fair"),
    "a device takes all that is left": (
        "_admission", "(C.max_total_pending - levels.pending) / 2",
        "(C.max_total_pending - levels.pending) / 1", "fair"),
    "a heartbeat extends what nobody runs": (
        "heartbeat", "f[2] == attempt and f[1] == 'running'",
        "f[2] == attempt and f[1] ~= 'done'", "fair"),
    "a pool counts the lane alone": (
        "_capacity", "math.min(free, pool)", "free", "fair"),
    "a key stands for any body": (
        "_receipts", "same = body == string.sub(given, 33)", "same = true", "fair"),
    "a lease of a minute more": (
        "start", "now + C.lease_ms", "now + C.lease_ms + 60000", "fair"),
    "a claim forgets the site": (
        "_device", "(d.site == 'default' and '' or '@' .. d.site)", "''", "fair"),
}  # fmt: skip


@pytest.fixture(scope="module")
def valkey() -> Iterator[Server]:
    """Give one server: the faults are in the scripts, not in it."""
    server = Server.start("valkey9")
    yield server
    server.stop()


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Give a way to change the Lua, and put it back."""
    caches = (scripts.load, scripts.definitions)
    yield monkeypatch
    monkeypatch.undo()
    for cached in caches:
        cached.cache_clear()


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_planted_fault_is_found(
    valkey: Server, fault: str, plant: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "fairlane")
    file, right, wrong, configuration = FAULTS[fault]
    text = scripts.read(file)
    assert text.count(right) == 1, f"{file}.lua does not have this once: {right}"
    whole = scripts.read
    plant.setattr(
        scripts, "read", lambda name: text.replace(right, wrong) if name == file else whole(name)
    )
    scripts.load.cache_clear()
    scripts.definitions.cache_clear()
    # What should have been refused and was not is a failure of pytest's, and no Exception.
    with pytest.raises((Exception, pytest.fail.Exception)):
        prove(valkey, configuration, EXAMPLES, share=1, shrinks=False)
