"""Waiting for what happens in the background, in place of sleeps of a fixed time."""

from __future__ import annotations

import asyncio
import inspect
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 120.0
"""Of a busy machine. Who waits for what never happens fails then, and nobody waits longer than for what does."""
FIRST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 0.2


def eventually(look: Callable[[], T], what: str = "", seconds: float = PATIENCE_SECONDS) -> T:
    """Return what `look` answers as soon as that is true; fail when it is not so in time."""
    deadline = time.monotonic() + seconds
    for pause in _pauses():
        if found := look():
            return found
        assert time.monotonic() < deadline, _never(what, found, seconds)
        time.sleep(pause)
    raise AssertionError("there is always another pause")


async def eventually_async(
    look: Callable[[], T | Awaitable[T]], what: str = "", seconds: float = PATIENCE_SECONDS
) -> T:
    """Do the same as `eventually`, while the loop goes on; `look` may be a coroutine function."""
    deadline = time.monotonic() + seconds
    for pause in _pauses():
        answer = look()
        if found := await answer if inspect.isawaitable(answer) else answer:
            return found
        assert time.monotonic() < deadline, _never(what, found, seconds)
        await asyncio.sleep(pause)
    raise AssertionError("there is always another pause")


def is_listening(port: int) -> bool:
    """Tell whether somebody takes connections at a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _pauses() -> Iterator[float]:
    """Yield pauses that get longer, since each look costs processor time that the others need."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        yield pause
        pause = min(pause * 1.3, LONGEST_PAUSE_SECONDS)


def _never(what: str, found: object, seconds: float) -> str:
    return f"not within {seconds:.0f} s: {what or 'what was waited for'}; last seen: {found!r}"
