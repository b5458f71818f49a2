"""One connection for all calls of an event loop: replies find who asked, whatever breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from fairlane.client.pipe import Pipe
from fairlane.client.wire import Wire

SLOW = ("BLPOP", "nothing", 30)


def run(url: str, talk: Callable[[Pipe], Awaitable[None]], timeout_s: float = 5.0) -> None:
    """Run a talk on a pipe in an event loop of its own."""

    async def all_of_it() -> None:
        pipe = Pipe(url, socket_timeout=timeout_s)
        try:
            await talk(pipe)
        finally:
            await pipe.close()

    asyncio.run(all_of_it())


def test_replies_find_who_asked_though_all_ask_at_once(store_url: str) -> None:
    async def talk(pipe: Pipe) -> None:
        words = [str(at).encode() for at in range(500)]
        assert await asyncio.gather(*(pipe.send(("ECHO", word)) for word in words)) == words
        ids = await asyncio.gather(*(pipe.send(("CLIENT", "ID")) for _ in range(5)))
        assert len(set(ids)) == 1

    run(store_url, talk)


def test_a_long_word_both_ways(store_url: str) -> None:
    async def talk(pipe: Pipe) -> None:
        word = bytes(range(256)) * 20_000
        assert await asyncio.gather(*(pipe.send(("ECHO", word)) for _ in range(3))) == [word] * 3

    run(store_url, talk)


def test_an_error_is_its_askers_alone(store_url: str) -> None:
    async def talk(pipe: Pipe) -> None:
        asked = [pipe.send(command) for command in (("ECHO", 1), ("NONSENSE",), ("ECHO", 2))]
        replies = await asyncio.gather(*asked, return_exceptions=True)
        assert replies[::2] == [b"1", b"2"]
        assert isinstance(replies[1], redis.ResponseError)
        replies = await pipe.send_many([("ECHO", 1), ("EVALSHA", "0" * 40, 0), ("ECHO", 2)])
        assert replies[::2] == [b"1", b"2"]
        assert isinstance(replies[1], redis.exceptions.NoScriptError)

    run(store_url, talk)


def test_who_gives_up_takes_nobody_elses_reply(store_url: str) -> None:
    async def talk(pipe: Pipe) -> None:
        await pipe.send(("PING",))
        asked = [asyncio.create_task(pipe.send(("ECHO", at))) for at in range(10)]
        await asyncio.sleep(0)  # all are sent, none is answered
        asked[3].cancel()
        replies = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(replies.pop(3), asyncio.CancelledError)
        assert replies == [str(at).encode() for at in range(10) if at != 3]

    run(store_url, talk)


def test_a_reply_that_does_not_come(store_url: str) -> None:
    async def talk(pipe: Pipe) -> None:
        with pytest.raises(redis.TimeoutError):
            await pipe.send(SLOW)
        assert await pipe.send(("ECHO", "next")) == b"next"

    run(store_url, talk, timeout_s=0.2)


def test_a_cut_tells_everybody_and_the_next_call_connects_anew(store_url: str) -> None:
    async def talk(pipe: Pipe) -> None:
        own = await pipe.send(("CLIENT", "ID"))
        asked = [asyncio.create_task(pipe.send(SLOW)) for _ in range(3)]
        await asyncio.sleep(0)
        killer = Wire(store_url)
        killer.send(("CLIENT", "KILL", "ID", own))
        killer.close()
        replies: list[Any] = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(reply) for reply in replies] == [redis.ConnectionError] * 3
        assert await pipe.send(("ECHO", "next")) == b"next"

    run(store_url, talk)


def test_no_server() -> None:
    async def talk(pipe: Pipe) -> None:
        for _ in range(2):
            with pytest.raises(redis.ConnectionError):
                await pipe.send(("PING",))

    run("unix:///nowhere/at/all", talk)


def test_a_pipe_in_one_event_loop_after_the_other(store_url: str) -> None:
    pipe = Pipe(store_url, socket_timeout=5.0)
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    for loop in (first, second, second):
        assert loop.run_until_complete(pipe.send(("ECHO", "word"))) == b"word"
    second.run_until_complete(pipe.close())
    first.run_until_complete(asyncio.sleep(0))  # lets go of what the second could not close
    first.close()
    second.close()
