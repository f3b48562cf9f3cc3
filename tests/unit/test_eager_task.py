"""Tasks that start eagerly: what runs in the caller, what in the task, and what a cancel does."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.eager_task import enter_task, start_eagerly
from tests.unit.s3.test_fast_path import BODY, Two, fill, signed, two, wire


def start_in_callback(*coroutines: Coroutine[Any, Any, None]) -> asyncio.Future[list[asyncio.Task[None] | None]]:
    """Start coroutines in a callback of the loop, as the parser's is."""
    loop = asyncio.get_running_loop()
    started: asyncio.Future[list[asyncio.Task[None] | None]] = loop.create_future()
    loop.call_soon(lambda: started.set_result([start_eagerly(loop, one) for one in coroutines]))
    return started


def start_and_cancel(coroutine: Coroutine[Any, Any, None]) -> asyncio.Future[asyncio.Task[None]]:
    """Start a coroutine in a callback that also cancels its task, before that runs."""
    loop = asyncio.get_running_loop()
    started: asyncio.Future[asyncio.Task[None]] = loop.create_future()

    def start() -> None:
        task = start_eagerly(loop, coroutine)
        assert task is not None
        task.cancel()
        started.set_result(task)

    loop.call_soon(start)
    return started


async def test_what_never_waits_needs_no_task() -> None:
    seen: list[object] = []

    async def answer() -> None:
        seen.append(asyncio.current_task())

    assert await start_in_callback(answer()) == [None]
    assert seen == [None]


async def test_the_rest_runs_in_a_task() -> None:
    seen: list[object] = []

    async def wait() -> None:
        await asyncio.sleep(0.001)
        seen.append(asyncio.current_task())

    (task,) = await start_in_callback(wait())
    assert task is not None
    assert not seen
    await task
    assert seen == [task]


async def test_a_time_limit_needs_a_task() -> None:
    async def limited() -> None:
        await enter_task()
        async with asyncio.timeout(0.001):
            await asyncio.sleep(60)

    (task,) = await start_in_callback(limited())
    assert task is not None
    with pytest.raises(TimeoutError):
        await task


async def test_several_wait_for_one_future() -> None:
    """Each of them tells its task of that future, which has one mark for all who begin to wait for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[int] = loop.create_future()
    seen: list[int] = []

    async def wait() -> None:
        seen.append(await future)

    ordinary = loop.create_task(wait())
    tasks = [task for task in await start_in_callback(wait(), wait()) if task is not None]
    loop.call_soon(future.set_result, 7)
    await asyncio.gather(ordinary, *tasks)
    assert seen == [7, 7, 7]


async def test_a_cancel_before_the_task_runs_reaches_the_coroutine() -> None:
    seen: list[str] = []

    async def clean_up() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            seen.append("cleaned up")

    task = await start_and_cancel(clean_up())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cleaned up"]


async def test_a_cancel_before_the_task_runs_reaches_what_it_waits_for() -> None:
    """As any cancel of a task does: a query that nobody waits for any more must end."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        await future

    task = await start_and_cancel(wait())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert future.cancelled()


async def test_an_error_of_the_first_stretch_is_the_callers() -> None:
    async def fail() -> None:
        raise ValueError("at once")

    loop = asyncio.get_running_loop()
    caught: asyncio.Future[bool] = loop.create_future()

    def start() -> None:
        with pytest.raises(ValueError, match="at once"):
            start_eagerly(loop, fail())
        caught.set_result(True)

    loop.call_soon(start)
    assert await caught


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Two]:
    async with two(tmp_path) as running:
        await fill(running)
        yield running


@pytest.mark.parametrize(
    "request_of",
    [
        lambda: signed("GET", "/bucket/object"),
        lambda: signed("PUT", "/bucket/object", body=BODY),
        lambda: signed("DELETE", "/bucket/object"),
    ],
    ids=["GET", "PUT", "DELETE"],
)
async def test_requests_leave_no_reference_cycle(gateway: Two, request_of: Callable[[], Any]) -> None:
    """The garbage collector would have to free them, in pauses that other requests wait for."""
    data = wire(request_of())
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.fast)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(5):
            writer.write(data)
            head = await reader.readuntil(b"\r\n\r\n")
            if data.startswith(b"GET"):
                await reader.readexactly(len(BODY))
            assert head[9:10] == b"2"
        await asyncio.sleep(0.01)
        gc.collect()
        left = {type(found).__name__ for found in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        writer.close()
    assert left.isdisjoint({"S3Request", "RequestCycle", "RequestBody", "V4Signature", "Task"}), left
