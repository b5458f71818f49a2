"""A call as a conversation, without a store: what is sent, and what the answers mean."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import Settings, verbs
from fairlane.conversation import NoFunction, Session, error_of
from fairlane.errors import (
    ConfigChanged,
    ConfigMismatch,
    CorruptReply,
    FairlaneError,
    StaleAttempt,
    StoreError,
    StoreNotDurable,
    StoreUnavailable,
    StoreUnsupported,
)

INFO: dict[str, Any] = {
    "redis_version": "7.0.15",
    "cluster_enabled": 0,
    "maxmemory_policy": "noeviction",
    "aof_enabled": 1,
}


def stored(settings: Settings) -> list[Any]:
    pairs = {**settings.shared(), "digest": settings.digest, "lanes": ",".join(settings.lanes)}
    return [[part.encode() for pair in pairs.items() for part in pair], b"epoch", 0, 0, b""]


def opened(settings: Settings, **info: Any) -> Session:
    """Return a session whose store gave this INFO and has these settings."""
    session = Session(settings)
    talk = session.open()
    next(talk)
    command = talk.send({**INFO, **info})
    if command[0] == "CONFIG":
        talk.send({"appendfsync": "everysec"})
    with pytest.raises(StopIteration):
        talk.send(stored(settings))
    return session


def answer(session: Session, verb: verbs.Verb[Any], *answers: Any) -> tuple[list[str], Any]:
    """Give a call these answers; return the commands that it sent, and its value."""
    talk, sent = session.call(verb), []
    try:
        command = next(talk)
        for reply in answers:
            sent.append(str(command[0]))
            command = talk.throw(reply) if isinstance(reply, Exception) else talk.send(reply)
    except StopIteration as end:
        return sent, end.value
    pytest.fail(f"it goes on with {command[0]!r}")


@pytest.mark.parametrize(
    "info",
    [
        {"cluster_enabled": 1},
        {"cluster_enabled": "1"},
        {"redis_version": "6.2.14"},
        {"redis_version": "7.2.4", "valkey_version": "7.1.0"},
    ],
    ids=str,
)
def test_a_store_that_cannot_hold_our_state(info: dict[str, Any]) -> None:
    with pytest.raises(StoreUnsupported):
        opened(Settings(), **info)


@pytest.mark.parametrize(
    "info",
    [{"redis_version": "7.0.0"}, {"redis_version": "7.2.4", "valkey_version": "9.0.1"}],
    ids=str,
)
def test_a_store_that_can(info: dict[str, Any]) -> None:
    assert opened(Settings(), **info).is_open


@pytest.mark.parametrize(
    ("info", "told"),
    [
        ({"maxmemory_policy": "allkeys-lru"}, "allkeys-lru"),
        ({"maxmemory_policy": "volatile-lru"}, "volatile-lru"),
        ({"aof_enabled": 0}, "appendonly"),
        ({"aof_enabled": "0"}, "appendonly"),
    ],
)
def test_a_store_that_can_lose_data_is_told_or_refused(
    info: dict[str, Any], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A17, A20."""
    place = f"redis://{info}"
    for _ in range(3):
        opened(Settings(store_url=place), **info)
    warnings = [record for record in caplog.records if record.name == "fairlane.store"]
    assert [told in record.getMessage() for record in warnings] == [True], "once a process"
    with pytest.raises(StoreNotDurable, match=told):
        opened(Settings(durability="strict"), **info)
    opened(Settings(durability="strict"))


@pytest.mark.parametrize("durability", ["warn", "strict"])
def test_a_store_that_loads_is_judged_when_it_has_loaded(durability: str) -> None:
    """It says `aof_enabled:0` until it has read its append-only file, as both servers do."""
    talk = Session(Settings(durability=durability)).open()
    next(talk)
    with pytest.raises(StoreUnavailable, match="loading"):
        talk.send({**INFO, "loading": 1, "aof_enabled": 0})
    assert opened(Settings(durability=durability), loading=0).is_open


@pytest.mark.parametrize(
    "reply", [{"appendfsync": "no"}, {b"appendfsync": b"no"}, [b"appendfsync", b"no"]], ids=str
)
def test_a_store_that_leaves_it_to_its_system_when_to_write_is_not_for_the_strict(
    reply: Any,
) -> None:
    talk = Session(Settings(durability="strict")).open()
    next(talk)
    assert talk.send(INFO) == ("CONFIG", "GET", "appendfsync")
    with pytest.raises(StoreNotDurable, match="appendfsync"):
        talk.send(reply)


def test_a_server_that_may_not_be_asked_is_taken_at_its_word() -> None:
    talk = Session(Settings(durability="strict")).open()
    next(talk)
    talk.send(INFO)
    assert talk.throw(StoreError("unknown command 'CONFIG'"))[0] == "FCALL"


def test_info_as_a_server_writes_it() -> None:
    talk = Session(Settings()).open()
    assert next(talk)[0] == "INFO"
    text = "# Server\r\nredis_version:6.0.1\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n"
    with pytest.raises(StoreUnsupported, match=r"redis 6\.0\.1 is too old"):
        talk.send(text.encode())


def test_a_library_that_the_server_does_not_have_is_loaded() -> None:
    session, missing = opened(Settings()), NoFunction("Function not found")
    sent, value = answer(session, verbs.Deregister("w"), missing, b"", 1)
    assert (sent, value) == (["FCALL", "FUNCTION", "FCALL"], True)
    with pytest.raises(StoreError, match="Function not found, though it was just loaded"):
        answer(session, verbs.Deregister("w"), *(missing, b"") * 10, missing)


def test_a_repeatable_verb_goes_again_once_and_no_other_at_all() -> None:
    session, lost = opened(Settings()), StoreUnavailable()
    assert answer(session, verbs.Deregister("w"), lost, 0) == (["FCALL"] * 2, False)
    with pytest.raises(StoreUnavailable):
        answer(session, verbs.Deregister("w"), lost, lost)
    with pytest.raises(StoreUnavailable):
        answer(session, verbs.Claim("text"), lost)


def test_changed_settings_are_joined_anew_once() -> None:
    session, other = opened(Settings()), Settings(batch_size=7)
    verb = verbs.Deregister("w")
    sent, value = answer(session, verb, ConfigChanged(), INFO, stored(other), 1)
    assert (sent, value) == (["FCALL", "INFO", "FCALL", "FCALL"], True)
    assert session.settings.batch_size == 7
    with pytest.raises(ConfigChanged):
        answer(session, verb, ConfigChanged(), INFO, stored(other), ConfigChanged())


def test_an_error_of_a_script_is_the_class_of_its_code() -> None:
    error = error_of("STALE_ATTEMPT task_id: attempt 1 of a script: abc, on @user_function:7.")
    assert type(error) is StaleAttempt
    assert str(error) == "task_id: attempt 1 of a"
    assert type(error_of("CONFIG_MISMATCH x")) is ConfigMismatch
    assert error_of("WRONGTYPE Operation against a key") is None


@pytest.mark.parametrize("reply", [None, [], b"", b"nonsense", {}, [b"accepted"], object()])
def test_a_reply_that_a_verb_cannot_read(reply: Any) -> None:
    verb = verbs.Enqueue("02:00:00:00:00:01", "text", {})
    with pytest.raises(CorruptReply, match="enqueue"):
        opened(Settings()).decode(verb, reply)


def test_a_code_belongs_to_one_class() -> None:
    with pytest.raises(TypeError, match="STALE_ATTEMPT"):
        type("Another", (FairlaneError,), {}, code="STALE_ATTEMPT")


def test_a_call_that_meets_new_settings_while_it_loads_calls_the_new_library() -> None:
    """Another thread joins anew in between: what was loaded is not what the call named at first."""
    session, other = opened(Settings()), Settings(batch_size=7)
    talk = session.call(verbs.Deregister("w"))
    old = next(talk)[1]
    join = session.open()
    next(join)
    join.send(INFO)
    with pytest.raises(StopIteration):
        join.send(stored(other))
    library = talk.throw(NoFunction("Function not found"))[3]
    new = talk.send(b"")[1]
    assert new != old
    assert isinstance(library, bytes)
    assert str(new).encode() in library
