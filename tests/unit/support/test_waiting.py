"""Waiting for what happens in the background: at once when it has, and never for ever."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.support.waiting import eventually, eventually_async, is_listening


def test_it_returns_what_was_seen_first() -> None:
    looks = iter([0, "", None, "found", "later"])
    assert eventually(lambda: next(looks)) == "found"


def test_it_fails_in_time_and_says_what_was_seen() -> None:
    with pytest.raises(AssertionError, match=r"not within 0 s: a file; last seen: \[\]"):
        eventually(list, "a file", 0.02)


async def test_it_waits_while_the_loop_goes_on() -> None:
    happened = asyncio.Event()
    asyncio.get_running_loop().call_later(0.01, happened.set)
    assert await eventually_async(happened.is_set)


async def test_a_look_may_be_a_coroutine_function() -> None:
    looks = iter([False, "found"])

    async def look() -> object:
        await asyncio.sleep(0)
        return next(looks)

    async def never() -> bool:
        return False

    assert await eventually_async(look) == "found"
    with pytest.raises(AssertionError, match="last seen: False"):
        await eventually_async(never, seconds=0.02)


def test_who_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert is_listening(port)
    assert not is_listening(port)
