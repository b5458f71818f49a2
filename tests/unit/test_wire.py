"""Commands as the protocol writes them, and replies as a real server sends them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from fairlane.client.wire import Wire, pack

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ARGS = st.one_of(TEXTS, st.binary(max_size=12), st.integers(), st.floats(allow_nan=False))


class Colour(StrEnum):
    RED = "red"


def read_back(packed: bytes) -> list[bytes]:
    """Return the arguments of one packed command, read as the protocol's page says."""
    count, rest = packed.removeprefix(b"*").split(b"\r\n", 1)
    args = []
    for _ in range(int(count)):
        size, rest = rest.removeprefix(b"$").split(b"\r\n", 1)
        args.append(rest[: int(size)])
        assert rest[int(size) : int(size) + 2] == b"\r\n"
        rest = rest[int(size) + 2 :]
    assert rest == b""
    return args


@given(st.lists(ARGS, min_size=1, max_size=8))
def test_a_server_reads_the_arguments_that_were_packed(args: list[Any]) -> None:
    def plain(arg: Any) -> bytes:
        return arg if isinstance(arg, bytes) else str(arg).encode()

    assert read_back(b"".join(pack(tuple(args)))) == [plain(arg) for arg in args]


@pytest.mark.parametrize("size", [0, 1, 1_023, 1_024, 65_535, 65_536, 300_000])
def test_every_length_has_its_line(size: int) -> None:
    args = ("SET", b"x" * size, "é" * size, b"last")
    assert read_back(b"".join(pack(args))) == [b"SET", b"x" * size, "é".encode() * size, b"last"]


def test_what_is_long_is_not_copied() -> None:
    payload = b"x" * 100_000
    assert any(piece is payload for piece in pack(("SET", "key", payload)))
    assert len(pack(("SET", "key", b"short"))) == 1


def test_arguments_of_other_classes() -> None:
    packed = b"".join(pack(("SET", Colour.RED, bytearray(b"ab"), 1.5)))  # type: ignore[arg-type]
    assert read_back(packed) == [b"SET", b"red", b"ab", b"1.5"]
    for arg in (True, None, ["a"]):
        with pytest.raises(redis.DataError, match=type(arg).__name__):
            pack(("SET", "key", arg))  # type: ignore[arg-type]


@pytest.fixture
def wire(store_url: str) -> Iterator[Wire]:
    wire = Wire(store_url, socket_timeout=5.0)
    yield wire
    wire.close()


@pytest.mark.parametrize("size", [0, 1, 65_536, 1_000_000])
def test_a_reply_of_any_length(wire: Wire, size: int) -> None:
    value = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    wire.send(("SET", "key", value))
    assert wire.send(("GET", "key")) == value


def test_replies_are_read_in_the_order_of_their_commands(wire: Wire) -> None:
    commands: list[tuple[Any, ...]] = [("ECHO", str(at)) for at in range(50)]
    commands.insert(25, ("NONSENSE",))
    replies = wire.send_many(commands)
    error = replies.pop(25)
    assert isinstance(error, redis.ResponseError)
    assert replies == [str(at).encode() for at in range(50)]


def test_many_may_take_longer_than_the_sockets_patience(store_url: str) -> None:
    wire = Wire(store_url, socket_timeout=1.0)
    slow = ("EVAL", "for turn = 1, 500000 do end return 1", 0)
    assert wire.send_many([(*slow, b"x" * 10_000)] * 600) == [1] * 600
    wire.close()


def test_an_error_is_raised_and_the_connection_stays_good(wire: Wire) -> None:
    own = wire.send(("CLIENT", "ID"))
    with pytest.raises(redis.exceptions.NoScriptError):
        wire.send(("EVALSHA", "0" * 40, 0))
    assert wire.send(("CLIENT", "ID")) == own


def test_a_late_reply_is_not_the_next_commands(store_url: str) -> None:
    wire = Wire(store_url, socket_timeout=0.05)
    with pytest.raises(redis.TimeoutError):
        wire.send(("BLPOP", "nothing", 30))
    assert wire.send(("ECHO", "next")) == b"next"
    wire.close()


def test_a_connection_that_the_server_closed(wire: Wire, store_url: str) -> None:
    own = wire.send(("CLIENT", "ID"))
    killer = Wire(store_url)
    killer.send(("CLIENT", "KILL", "ID", own))
    killer.close()
    with pytest.raises(redis.ConnectionError):
        wire.send(("ECHO", "lost"))
    assert wire.send(("ECHO", "next")) == b"next"


def test_threads_have_connections_of_their_own(wire: Wire) -> None:
    wrong = []

    def echo(name: str) -> None:
        for at in range(200):
            word = f"{name}{at}".encode()
            if wire.send(("ECHO", word)) != word:
                wrong.append(word)

    threads = [threading.Thread(target=echo, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
