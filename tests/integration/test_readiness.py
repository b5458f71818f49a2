"""Readiness on real servers: each fault of a store is named, with what to do about it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fairlane import AsyncClient, Client, Settings, TaskType
from fairlane.errors import StoreDenied, StoreNotDurable, StoreUnavailable
from fairlane.services.readiness import Report, Verdict, readiness, readiness_async
from fairlane.verbs import Acknowledge, Heartbeat
from support.eventually import eventually
from support.servers import KINDS, Server


@pytest.fixture(scope="module", params=list(KINDS))
def own(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Give a server whose options a test may set."""
    server = Server.start(request.param)
    yield server
    server.stop()


@contextmanager
def options(server: Server, **values: str) -> Iterator[None]:
    """Set options of a server, and set them back."""
    names = {name.replace("_", "-"): value for name, value in values.items()}
    before = {name: str(server.client.config_get(name)[name]) for name in names}
    for name, value in names.items():
        server.client.config_set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            server.client.config_set(name, value)


def add_user(server: Server, name: str, rights: str) -> None:
    """Add a user with the password `secret`."""
    raw: Any = server.client
    raw.execute_command("ACL", "SETUSER", name, "on", ">secret", *rights.split())


def looked(server: Server, **settings: Any) -> Report:
    """Return what a client that has just come finds."""
    with Client(Settings(store_url=server.url, **settings)) as client:
        return readiness(client)


def verdict(report: Report, name: str) -> tuple[Verdict, str]:
    check = report.check(name)
    assert check is not None, f"no check {name} in {report}"
    assert check.next_step or check.verdict is Verdict.OK, check
    return check.verdict, check.found


@pytest.mark.parametrize(
    ("set_to", "durability", "expected"),
    [
        ({"appendonly": "no", "save": ""}, "none", Verdict.WARN),
        ({"appendonly": "no", "save": "3600 1"}, "rdb", Verdict.WARN),
        ({"appendonly": "yes", "appendfsync": "no"}, "aof-no", Verdict.WARN),
        ({"appendonly": "yes", "appendfsync": "everysec"}, "aof-everysec", Verdict.OK),
        ({"appendonly": "yes", "appendfsync": "always"}, "aof-always", Verdict.OK),
    ],
    ids=["none", "rdb", "aof-no", "aof-everysec", "aof-always"],
)
def test_the_durability_in_force(
    own: Server, set_to: dict[str, str], durability: str, expected: Verdict
) -> None:
    """A20: with persistence off, `durability: none` is told."""
    with options(own, **set_to):
        report = looked(own)
        assert report.durability == report.as_dict()["durability"] == durability
        assert verdict(report, "durability")[0] is expected
        assert report.is_ready


def test_a_store_without_persistence_is_warned_of_at_the_start(
    own: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """A20: persistence off is a warning at the start, and no start at all under `strict`."""
    # Whatever another test did to the loggers of this process.
    logger = logging.getLogger("fairlane.store")
    logger.disabled = False
    logger.addHandler(caplog.handler)
    caplog.set_level(logging.WARNING, logger.name)
    # A process says it once of a URL, and another test was there before.
    with Client(Settings(store_url=f"{own.url}&client_name=first")) as client:
        client.ping()
    logger.removeHandler(caplog.handler)
    assert "appendonly is off" in caplog.text
    with (
        Client(Settings(store_url=own.url, durability="strict")) as client,
        pytest.raises(StoreNotDurable, match="appendonly"),
    ):
        client.ping()
    assert not looked(own, durability="strict").is_ready


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru"])
def test_an_eviction_policy_that_drops_keys(own: Server, policy: str) -> None:
    """A17: readiness says so, and `strict` refuses to start."""
    with options(own, maxmemory_policy=policy, appendonly="yes"):
        report = looked(own)
        assert verdict(report, "eviction")[0] is Verdict.WARN
        assert policy in verdict(report, "eviction")[1]
        strict = Settings(store_url=own.url, durability="strict")
        with Client(strict) as client, pytest.raises(StoreNotDurable, match=policy):
            client.ping()
        report = looked(own, durability="strict")
        assert verdict(report, "eviction")[0] is Verdict.FAIL
        assert not report.is_ready


def test_memory_that_runs_out(own: Server) -> None:
    used = int(own.client.info("memory")["used_memory"])
    with options(own, maxmemory=str(used * 2)):
        assert verdict(looked(own), "memory")[0] is Verdict.OK
    with options(own, maxmemory=str(used * 100 // 95)):
        assert verdict(looked(own), "memory")[0] is Verdict.WARN
    with options(own, maxmemory=str(used // 2)):
        report = looked(own)
        assert verdict(report, "memory")[0] is Verdict.FAIL
        assert not report.is_ready


def test_a_replica_refuses_writes(own: Server) -> None:
    with Client(Settings(store_url=own.url)) as client:
        client.ping()
        own.client.replicaof("127.0.0.1", 1)
        try:
            report = readiness(client)
            assert verdict(report, "role")[0] is Verdict.FAIL
            assert "127.0.0.1:1" in verdict(report, "role")[1]
            assert not report.is_ready
        finally:
            own.client.replicaof("NO", "ONE")
        assert readiness(client).is_ready


def test_a_snapshot_that_failed_stops_all_writes(own: Server) -> None:
    """K15: MISCONF is named by its cause."""
    in_the_way = own.folder / "dump.rdb"
    with options(own, save="3600 1"):
        in_the_way.unlink(missing_ok=True)
        in_the_way.mkdir()
        (in_the_way / "x").touch()
        try:
            own.client.bgsave()
            eventually(lambda: own.client.info("persistence")["rdb_last_bgsave_status"] == "err")
            report = looked(own)
            assert verdict(report, "writes")[0] is Verdict.FAIL
            assert "MISCONF" in verdict(report, "writes")[1]
            assert not report.is_ready
            own.client.config_set("stop-writes-on-bgsave-error", "no")
            assert verdict(looked(own), "writes")[0] is Verdict.WARN
        finally:
            own.client.config_set("stop-writes-on-bgsave-error", "yes")
            (in_the_way / "x").unlink()
            in_the_way.rmdir()
        own.client.bgsave()
        eventually(lambda: own.client.info("persistence")["rdb_last_bgsave_status"] == "ok")
        assert verdict(looked(own), "writes")[0] is Verdict.OK


def test_a_wrong_password_is_told_as_such(own: Server) -> None:
    add_user(own, "worker", "~* &* +@all")
    with options(own, requirepass="hidden"):
        for user in ("", "worker:guess@", ":guess@"):
            url = own.url.replace("unix://", f"unix://{user}")
            with Client(Settings(store_url=url)) as client:
                with pytest.raises(StoreDenied) as raised:
                    client.ping()
                report = readiness(client)
            assert isinstance(raised.value, StoreUnavailable)
            assert "reachable" not in str(raised.value)
            assert verdict(report, "connection")[0] is Verdict.FAIL
            assert "password" in report.checks[0].next_step
            assert "guess" not in str(report)
        with Client(Settings(store_url=own.url.replace("//", "//worker:secret@"))) as client:
            client.ping()


def test_a_store_that_is_away() -> None:
    with Client(Settings(store_url="redis://127.0.0.1:1/0")) as client:
        report = readiness(client)
    assert [check.name for check in report.checks] == ["connection"]
    assert (report.verdict, report.is_ready) == (Verdict.FAIL, False)


def test_settings_that_disagree_with_the_store(own: Server) -> None:
    own.empty()
    looked(own)
    report = looked(own, batch_size=7)
    assert verdict(report, "settings")[0] is Verdict.FAIL
    assert "7" in verdict(report, "settings")[1]
    assert "10" in verdict(report, "settings")[1]
    assert not report.is_ready


def test_a_lane_without_a_worker(own: Server) -> None:
    own.empty()
    with Client(Settings(store_url=own.url)) as client:
        client.enqueue("02:00:00:00:00:01", "text", {})
        report = readiness(client)
        assert verdict(report, "consumers of text") == (
            Verdict.FAIL,
            "no consumer for lane text; pending: 1",
        )
        assert report.is_ready, "it can accept and keep tasks"
        client.run(Heartbeat("host:1:a", ["text"], 0, report={"reason": "cpu at 90 %"}))
        assert "cpu at 90 %" in verdict(readiness(client), "consumers of text")[1]
        client.run(Heartbeat("host:1:a", ["text"], 2))
        assert verdict(readiness(client), "consumers of text")[0] is Verdict.OK
        assert verdict(readiness(client), "consumers of ocr")[0] is Verdict.FAIL


def test_a_user_who_may_not_ask_for_options_is_served_all_the_same(own: Server) -> None:
    add_user(own, "producer", "~* +@read +@write +@connection +fcall +function +time +info")
    url = own.url.replace("unix://", "unix://producer:secret@")
    with options(own, appendonly="yes"), Client(Settings(store_url=url)) as client:
        report = readiness(client)
    assert report.durability == "aof"
    assert report.is_ready


def test_asyncio_code_is_told_the_same(own: Server) -> None:
    async def look() -> Report:
        async with AsyncClient(Settings(store_url=own.url)) as client:
            return await readiness_async(client)

    def names(report: Report) -> list[tuple[str, Verdict]]:
        return [(check.name, check.verdict) for check in report.checks]

    assert names(asyncio.run(look())) == names(looked(own))


def test_a_store_that_came_back_empty_is_told_until_somebody_takes_note(own: Server) -> None:
    own.empty()
    with Client(Settings(store_url=own.url)) as client:
        client.check_epoch()
        assert verdict(readiness(client), "epoch")[0] is Verdict.OK
        own.empty()
        client.check_epoch()
        report = readiness(client)
        assert verdict(report, "epoch")[0] is Verdict.FAIL
        assert "empty" in verdict(report, "epoch")[1]
        assert report.is_ready
        client.run(Acknowledge())
        assert verdict(readiness(client), "epoch")[0] is Verdict.OK


def test_a_lane_of_ones_own_handlers_names_them_in_the_next_step(own: Server) -> None:
    own.client.flushall()
    types = (TaskType("text", "text", "sensitive.text"), TaskType("resize", "images", "my.images"))
    with Client(Settings(store_url=own.url, task_types=types)) as client:
        steps = {check.name: check.next_step for check in readiness(client).checks}
        assert steps["consumers of text"] == "start one: `fairlane worker --queues sensitive.text`"
        assert steps["consumers of images"].startswith(
            "start one: `fairlane worker --handlers MODULE --queues my.images`"
        )
        assert steps["consumers of images"].endswith("the handler of resize")
    own.client.flushall()
