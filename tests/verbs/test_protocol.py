"""What holds of every verb: one answer on every way, lost scripts, second runs, lost settings."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from fairlane import AsyncClient, verbs
from fairlane.errors import (
    ClockRefused,
    CorruptReply,
    FairlaneError,
    NotFound,
    TurnLost,
)
from fairlane.scripts import library_of, read
from fairlane.verbs import Join, Migrate, Verb, every_verb
from support.cases import CASES, case_of
from support.store import LANE, Store, mac
from verbs.conftest import Open

each_verb = pytest.mark.parametrize("kind", every_verb(), ids=lambda verb: verb.SCRIPT)
Way = Callable[[Store, Verb[Any]], Any]


def awaited(store: Store, verb: Verb[Any]) -> Any:
    async def run() -> Any:
        async with AsyncClient(store.settings, clock=store.clock) as client:
            return await client.run(verb)

    return asyncio.run(run())


def pipelined(store: Store, verb: Verb[Any]) -> Any:
    first, second = store.client.run_many([verbs.Overload(), verb])
    assert not isinstance(first, FairlaneError)
    return second


def awaited_in_a_pipeline(store: Store, verb: Verb[Any]) -> Any:
    async def run() -> Any:
        async with AsyncClient(store.settings, clock=store.clock) as client:
            return (await client.run_many([verbs.Overload(), verb]))[1]

    return asyncio.run(run())


def test_every_verb_has_a_case() -> None:
    assert set(CASES) == set(every_verb())


@each_verb
def test_every_way_to_run_a_verb_answers_the_same(open_store: Open, kind: type[Verb[Any]]) -> None:
    answers = []
    ways: tuple[Way, ...] = (Store.run, awaited, pipelined, awaited_in_a_pipeline)
    for way in ways:
        store = open_store()
        answers.append(way(store, case_of(kind)(store)))
        store.check()
        store.redis.flushall()
    store.redis.set(store.keys.clock, "virtual")
    assert answers == [answers[0]] * len(ways)
    assert not isinstance(answers[0], FairlaneError)


@each_verb
def test_a_server_that_forgot_the_library_gets_it_anew(store: Store, kind: type[Verb[Any]]) -> None:
    """A14: before every call, in each of the ways to call."""
    verb = case_of(kind)(store)
    store.client.run_many([verbs.Overload()])
    answers: list[Any] = []
    for way in (Store.run, pipelined, awaited, awaited_in_a_pipeline):
        store.redis.function_flush("SYNC")
        store.redis.script_flush("SYNC")
        try:
            answers.append(way(store, verb))
        except FairlaneError as error:
            answers.append(error)
    errors = [answer for answer in answers if isinstance(answer, FairlaneError)]
    # A turn ends once; after that each answer is that it is over.
    assert [error.code for error in errors] == ["TURN_LOST"] * (3 * (kind is verbs.Release))


@each_verb
def test_a_second_run_does_what_the_twice_line_says(store: Store, kind: type[Verb[Any]]) -> None:
    twice = next(line for line in read(kind.SCRIPT).splitlines() if line.startswith("-- Twice"))
    verb = case_of(kind)(store)
    first = store.run(verb)
    if re.search("reads again|changes nothing|reads the same", twice):
        with store.unchanged():
            second = store.run(verb)
        if "reads" in twice:
            assert second == first
    elif kind.REPEATABLE:
        store.run(verb)
    # A second run of a verb that must not be sent again is a test of its own file.


@each_verb
def test_a_real_store_takes_no_clock(store: Store, kind: type[Verb[Any]]) -> None:
    verb = case_of(kind)(store)
    store.redis.delete(store.keys.clock)
    store.refuses(ClockRefused, verb)


@each_verb
def test_every_verb_runs_by_the_servers_clock(store: Store, kind: type[Verb[Any]]) -> None:
    verb = case_of(kind)(store)
    store.is_spoilt = True  # for it, the clock jumps
    store.clock.now_ms = 0
    assert not isinstance(pipelined(store, verb), FairlaneError)


def test_without_a_clock_of_ones_own_it_is_the_servers(store: Store) -> None:
    store.clock.now_ms = 0
    before = store.redis.time()
    created = store.client.enqueue(mac(1), LANE, {}).created_at_ms
    after = store.redis.time()
    assert before[0] * 1000 <= created <= (after[0] + 1) * 1000


@pytest.mark.parametrize(
    "kind", [verb for verb in every_verb() if verb not in (Join, Migrate)], ids=lambda v: v.SCRIPT
)
def test_a_store_that_came_back_empty_is_set_up_anew(store: Store, kind: type[Verb[Any]]) -> None:
    verb = case_of(kind)(store)
    configured = store.redis.hgetall(store.keys.config)
    store.redis.flushall()
    store.redis.set(store.keys.clock, "virtual")
    # It is empty, after all: what a verb misses there it says.
    with contextlib.suppress(NotFound, TurnLost):
        store.run(verb)
    assert store.redis.hgetall(store.keys.config) == configured


@each_verb
def test_a_script_reads_every_argument_that_its_verb_sends(
    store: Store, kind: type[Verb[Any]]
) -> None:
    verb = case_of(kind)(store)
    source = read(kind.SCRIPT)
    last = max([1, *map(int, re.findall(r"ARGV\[(\d+)\]", source))])
    sent = 1 + len(verb.args(store.client.settings))
    assert sent >= last if "#ARGV" in source else sent == last


@each_verb
def test_a_foreign_reply_is_told_as_such(store: Store, kind: type[Verb[Any]]) -> None:
    verb = case_of(kind)(store)
    if kind in (
        verbs.Acknowledge,
        verbs.Announce,
        verbs.Cancel,
        verbs.Deregister,
        verbs.Finish,
        verbs.ForgetFiles,
        verbs.Lead,
        verbs.Quarantine,
        verbs.RecordMinute,
        verbs.RevokeToken,
        verbs.Withdraw,
    ):
        nonsense: Any = b"nonsense"
    else:
        nonsense = 7
    with pytest.raises(CorruptReply, match=kind.SCRIPT):
        store.client._session.decode(verb, nonsense)


def fields(row: Any) -> dict[str, Any]:
    """Return a reply's map, which the older protocol sends as a list."""
    return row if isinstance(row, dict) else dict(zip(row[::2], row[1::2], strict=True))


@each_verb
def test_the_server_knows_the_flags(kind: type[Verb[Any]], store: Store) -> None:
    verb = case_of(kind)(store)
    store.run(verb)
    library = library_of(kind.SCRIPT, store.keys, (store.settings, store.settings.digest))
    (listed,) = map(fields, store.redis.function_list(library.name))
    flags = re.search(r"^-- Flags +(\S+)$", read(kind.SCRIPT), re.MULTILINE)
    functions = map(fields, listed["functions"])
    known = {function["name"]: set(function["flags"]) for function in functions}
    assert known[library.function(kind.SCRIPT)] == ({flags[1]} if flags else set())


def test_a_pipeline_tells_each_result_or_error_in_its_place(store: Store) -> None:
    batch = [
        verbs.Enqueue(mac(1), LANE, {}, task_id="a"),
        verbs.InspectTask("unknown"),
        verbs.Cancel("a"),
        verbs.Cancel("a"),
    ]
    receipt, missing, first, second = store.client.run_many(batch)
    assert (receipt.task_id, first, second) == ("a", True, False)
    assert missing.code == "TASK_NOT_FOUND"
    assert store.client.run_many([]) == []


def test_a_pipeline_joins_anew_when_the_settings_changed(store: Store) -> None:
    store.other().migrate(store.other(batch_size=7).settings)
    ids = [f"t{at}" for at in range(5)]
    receipts = store.client.run_many([verbs.Enqueue(mac(1), LANE, {}, task_id=at) for at in ids])
    assert [receipt.task_id for receipt in receipts] == ids
    assert store.client.settings.batch_size == 7


def test_an_async_pipeline_joins_anew_when_the_settings_changed(store: Store) -> None:
    async def run() -> list[Any]:
        async with AsyncClient(store.settings, clock=store.clock) as client:
            await client.run(verbs.Overload())
            store.other().migrate(store.other(batch_size=7).settings)
            return await client.run_many([verbs.Overload(), verbs.Overload()])

    first, second = asyncio.run(run())
    assert not isinstance(first, FairlaneError)
    assert first == second


def test_many_calls_at_once_load_a_lost_library_once(store: Store) -> None:
    def loads() -> int:
        stats = store.redis.info("commandstats")
        return int(stats.get("cmdstat_function|load", {}).get("calls", 0))

    async def run() -> list[Any]:
        async with AsyncClient(store.settings, clock=store.clock) as client:
            await client.run(verbs.Overload())
            store.redis.function_flush("SYNC")
            return await asyncio.gather(*(client.run(verbs.Overload()) for _ in range(100)))

    before = loads()
    assert len(asyncio.run(run())) == 100
    assert loads() == before + 1


def test_many_calls_at_once_join_once(store: Store) -> None:
    def infos() -> int:
        return int(store.redis.info("commandstats")["cmdstat_info"]["calls"])

    async def run() -> list[Any]:
        async with AsyncClient(store.settings, clock=store.clock) as client:
            return await asyncio.gather(*(client.run(verbs.Overload()) for _ in range(100)))

    before = infos()
    assert len(asyncio.run(run())) == 100
    assert infos() == before + 2, "the client's, and the one that asks here"
