"""Floods: very many tasks of one device, very many devices, very large payloads, one long task."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psutil
import pytest

from fairlane import verbs
from fairlane.errors import FairlaneError
from fairlane.model import TaskState
from fairlane.payload import decode
from fairlane.services.janitor import purge, sweep
from support.ledger import Judge
from support.stage import Stage, staged
from support.store import mac
from support.tally import History

FLOOD: Final = 100_000
LONGEST_US: Final = 10_000
MB: Final = 1024 * 1024
OPEN: Final[dict[str, Any]] = {"max_total_pending": 10**6, "max_per_mac_pending": 10**6}


@contextmanager
def slow_calls(stage: Stage) -> Iterator[list[str]]:
    """Give the calls that took the server longer than 10 ms; it is filled when the block ends."""
    redis, slow = stage.system.redis, list[str]()
    redis.config_set("slowlog-log-slower-than", LONGEST_US)
    redis.config_set("slowlog-max-len", 10_000)
    redis.slowlog_reset()
    yield slow
    # Reads of the tests' own (whole streams, every key) are no calls of fairlane's.
    slow += [
        f"{entry['duration'] / 1000:04.1f} ms by {_verb(bytes(entry['command']))}"
        for entry in redis.slowlog_get(10_000)
        if bytes(entry["command"]).startswith(b"FCALL")
    ]
    redis.config_set("slowlog-log-slower-than", -1)


def _verb(command: bytes) -> str:
    """Return the verb of a call."""
    return command.split()[1].split(b"_", 2)[2].decode()


@pytest.mark.timeout(900)
@pytest.mark.fault(
    "L1", "100,000 tasks of one device, then 20 devices with 5 each; then all is purged",
    "each of the 20 starts within one round; no call keeps the store over 10 ms",
)  # fmt: skip
def test_one_device_floods(judge: Judge, caplog: pytest.LogCaptureFixture) -> None:
    """A19, A27: the flood costs its own device, and no script walks it."""
    caplog.set_level(logging.ERROR)  # a line for each task that expires
    with staged(**OPEN) as stage:
        system, run = stage.system, stage.system.client.run
        with slow_calls(stage) as slow:
            # Those that will be left are past their time soon; what follows is not.
            flood = stage.send(FLOOD, devices=1, ttl_ms=120_000)
            quiet = [
                system.client.enqueue(mac(1 + at % 20), "text", stage.noting()).task_id
                for at in range(100)
            ]
            stage.dispatcher()
            stage.worker()
            records = system.ended(quiet, 120.0)
            assert {record.state for record in records} == {TaskState.DONE}
            served = History.of(system)
            order = [event.mac for event in served.events if event.event == "claimed"]
            first = min(order.index(mac(1 + at)) for at in range(20))
            within = [order.index(mac(1 + at)) - first for at in range(20)]
            # One round: each of the 21 devices has one turn before any of the quiet has a second.
            assert max(within) <= 2 * 21, order[:60]
            for program in system.programs:
                program.stop(60.0)

            def all_is_purged() -> None:
                sweep(system.client)
                purge(system.client)
                assert run(verbs.InspectTotals()).pending == 0

            # Their time is up two minutes after they came.
            system.explained(all_is_purged, 400.0)
        calls = system.redis.info("commandstats")["cmdstat_fcall"]["calls"]
        ended = run(verbs.InspectTotals()).counts
        assert ended["done"] + ended["expired"] == len(flood) + len(quiet)
        worst = f", {max(slow)}" if slow else ""
        judge.note("calls over 10 ms", f"{len(slow)} of {calls:,}{worst}")
        judge.judge(system)
        # A busy machine takes the server from its processor now and then, in any call. One that is
        # slow by what it does is slow each time, and there are thousands of each.
        assert len(slow) <= calls / 100, slow


@pytest.mark.timeout(900)
@pytest.mark.fault(
    "L2", "10,000 devices with one task each", "all done; as many keys as before when all is over"
)
def test_ten_thousand_devices(judge: Judge) -> None:
    """A42: a device without tasks leaves nothing behind."""
    with staged(**OPEN, result_ttl_ms=5_000) as stage:
        system = stage.system
        stage.dispatcher()
        stage.worker(slots=4)
        system.ended(stage.send(1))
        ids = stage.send(10_000, devices=10_000)
        totals = verbs.InspectTotals()
        system.explained(lambda: system.client.run(totals).counts["done"] == 10_001, 600.0)
        assert len(set(History.of(system).tasks("done")) & set(ids)) == 10_000

        def only_the_system_is_left() -> None:
            left = [key for key in system.redis.keys("*") if "task:" in key or "meta:" in key]
            assert not left, (len(left), left[:5])

        system.explained(only_the_system_is_left, 120.0)
        judge.note("keys left of 10,000 devices", "0")
        judge.note("accepted = done", "10001")


@pytest.mark.timeout(300)
@pytest.mark.fault(
    "L3", "payloads and results of 1 MB (max_payload raised), 50 of them",
    "equal bytes at the handler; all done",
)  # fmt: skip
def test_payloads_of_a_megabyte(judge: Judge) -> None:
    """A36, at a limit that was raised."""
    size = 1024 * 1024
    with staged(max_payload_bytes=size, max_result_bytes=2 * size) as stage:
        system = stage.system
        stage.dispatcher()
        stage.worker()
        sent = {}
        for at in range(50):
            text = chr(0x4E00 + at) * ((size - 300) // 3)
            sent[system.client.enqueue(mac(at), "text", {"text": text}).task_id] = text
        for record in system.ended(list(sent), 120.0):
            echoed = decode(record.result)["echo"]["text"]
            assert hashlib.sha256(echoed.encode()).digest() == (
                hashlib.sha256(sent[record.task_id].encode()).digest()
            )
        judge.judge(system)


@pytest.mark.fault(
    "L4", "one long task and ten short ones, in a lane of two slots",
    "every short one is done while the long one runs",
)  # fmt: skip
def test_a_long_task_holds_up_nobody(judge: Judge) -> None:
    """A29."""
    with staged() as stage:
        system = stage.system
        stage.dispatcher()
        stage.worker(slots=2)
        with system.gated([mac(1)]) as (long,):
            short = stage.send(10, devices=2, do="linger", seconds=1.0)
            records = system.ended(short, 60.0)
            took_ms = max(r.ended_at_ms for r in records) - min(r.created_at_ms for r in records)
            assert {record.state for record in records} == {TaskState.DONE}
            assert system.client.task(long).state is TaskState.RUNNING
        system.ended([long])
        judge.note("the ten took", f"{took_ms / 1000:.1f} s")
        judge.judge(system)


@pytest.mark.timeout(1_800)
@pytest.mark.fault(
    "L5", "100,000 tasks of 1,000 devices, each claimed, started and finished",
    "keys, the store's memory and the caller's are what they were",
)  # fmt: skip
def test_a_hundred_thousand_tasks_leave_nothing(judge: Judge) -> None:
    """A47: what is kept is bounded by time and by count, never by how much went through."""
    with staged(result_ttl_ms=1_000, events_maxlen=1_000, max_total_pending=5_000) as stage:
        redis, client, me = stage.system.redis, stage.system.client, psutil.Process()

        def pass_through(rounds: int) -> None:
            for _ in range(rounds):
                stage.send(1_000, devices=1_000)
                left = 1_000
                while left:
                    leased = client.run(verbs.Claim("text", 100)).leased
                    starts = [verbs.Start(t.task_id, t.attempt, "w", "run") for t in leased]
                    ends = [verbs.Finish(t.task_id, t.attempt) for t in leased]
                    answers = client.run_many([*starts, *ends])
                    assert not [a for a in answers if isinstance(a, FairlaneError)]
                    left -= len(leased)

        def rests() -> tuple[int, int, int, int]:
            def is_over() -> None:
                left = list(redis.scan_iter("*task:*", count=10_000))
                assert not left, len(left)

            stage.system.explained(is_over, 120.0)
            redis.execute_command("MEMORY", "PURGE")
            memory = redis.info("memory")
            rss = memory["used_memory_rss"]
            return redis.dbsize(), memory["used_memory"], rss, me.memory_info().rss

        pass_through(10)
        before = rests()
        pass_through(90)
        after = rests()
        done = client.run(verbs.InspectTotals()).counts["done"]
        names = ("keys", "the store's data", "the store's RSS", "the caller's RSS")
        for name, was, now in zip(names, before, after, strict=True):
            shown = f"{was} → {now}" if name == "keys" else f"{was / MB:.1f} → {now / MB:.1f} MB"
            judge.note(name, shown)
        judge.note("accepted = done", f"{done:,}")
        assert done == 100_000
        assert after[0] == before[0]
        # The stream is trimmed in whole nodes; an allocator gives back in pages.
        assert after[1] - before[1] < 2 * MB
        assert after[2] - before[2] < 16 * MB
        assert after[3] - before[3] < 16 * MB
