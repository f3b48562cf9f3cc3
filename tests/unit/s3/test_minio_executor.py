"""Bodies are encrypted one after the other, and few requests may wait."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

from sluice_s3.app.s3.errors import SlowDown
from sluice_s3.app.s3.minio.executor import MAX_OF_KEY, MAX_WAITING, BoundedExecutor


async def test_requests_past_the_bounds_are_refused() -> None:
    executor, gate = BoundedExecutor(), Event()

    def work(secret: str, data: bytes) -> bytes:
        gate.wait(60)
        return data + secret.encode()

    async def run(key: str) -> bytes:
        return await executor.run(key, work, "-s", b"d")

    waiting = [asyncio.create_task(run(f"key{number // MAX_OF_KEY}")) for number in range(MAX_WAITING)]
    await asyncio.sleep(0)
    for key in ("key0", "another"):
        with pytest.raises(SlowDown):
            await run(key)
    always = asyncio.create_task(executor.run_always("key0", work, "-s", b"d"))
    gate.set()
    assert await asyncio.gather(*waiting, always) == [b"d-s"] * (MAX_WAITING + 1)
    assert await run("key0") == b"d-s"


async def test_one_key_leaves_room_for_others_and_the_threads_of_the_loop() -> None:
    executor, gate = BoundedExecutor(), Event()

    def work(secret: str, data: bytes) -> bytes:
        gate.wait(60)
        return data

    waiting = [asyncio.create_task(executor.run("key", work, "", b"")) for _ in range(MAX_OF_KEY)]
    await asyncio.sleep(0)
    with pytest.raises(SlowDown):
        await executor.run("key", work, "", b"")
    other = asyncio.create_task(executor.run("other", work, "", b"x"))
    assert await asyncio.to_thread(int, "7") == 7
    gate.set()
    assert await other == b"x"
    await asyncio.gather(*waiting)
