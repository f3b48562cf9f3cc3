"""Tasks that start eagerly: a coroutine runs in its caller until it first waits.

Most requests never wait, or only for one commit. A task that starts in the next turn of the event loop costs them more
than all of their bookkeeping. Python 3.12 has eager tasks of its own; this also works with 3.11.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterator
from typing import Any, TypeVar, cast

NOTHING = object()


T = TypeVar("T")


class StartedCoroutine(Coroutine[Any, Any, T]):
    """A coroutine that waits for the first time. A task runs the rest of it, or another coroutine awaits that."""

    __slots__ = ("_coroutine", "_waits_for")

    def __init__(self, coroutine: Coroutine[Any, Any, T], waits_for: Any) -> None:
        if waits_for is not None:
            # the mark of a future for the task that waits for it: until then others may begin to wait for the same one
            waits_for._asyncio_future_blocking = False
        self._coroutine = coroutine
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, T]:
        return cast(Generator[Any, Any, T], self)

    def __iter__(self) -> Iterator[Any]:
        return cast(Iterator[Any], self)

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        """Return what the coroutine waits for; first that at which it stopped."""
        waits_for, self._waits_for = self._waits_for, NOTHING
        if waits_for is NOTHING:
            return self._coroutine.send(value)
        if waits_for is not None:
            waits_for._asyncio_future_blocking = True
        return waits_for

    def throw(self, *error: Any) -> Any:
        """Raise an error where the coroutine waits. A cancel before the task waits also cancels what it waits for."""
        waits_for, self._waits_for = self._waits_for, NOTHING
        if waits_for is not NOTHING and waits_for is not None:
            waits_for.cancel()
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """End the coroutine where it waits."""
        self._coroutine.close()


def start_eagerly(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Run a coroutine until it first waits. Return the task that runs the rest; None when it has ended.

    For callbacks of the loop, not for code in a task. The first stretch belongs to no task and has its caller's
    context: code that needs a task (`asyncio.timeout`) or sets context variables calls `enter_task` before. Raises what
    the coroutine raises in that stretch.
    """
    try:
        waits_for: Any = coroutine.send(None)
    except StopIteration:
        return None
    return loop.create_task(StartedCoroutine(coroutine, waits_for))


async def enter_task() -> None:
    """Continue in a task, in the next turn of the loop if the caller has none yet."""
    if asyncio.current_task() is None:
        await asyncio.sleep(0)
