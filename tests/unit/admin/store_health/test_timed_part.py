"""Parts of an answer that may hang."""

from __future__ import annotations

import asyncio
import time

import pytest

from sluice_s3.app.admin.store_health.timed_part import TimedPart
from sluice_s3.app.errors import StoreUnavailable


class Source:
    """A value that can be made to hang or to fail."""

    def __init__(self) -> None:
        self.calls = 0
        self.failing = False
        self.open = asyncio.Event()
        self.open.set()

    async def load(self) -> int:
        self.calls += 1
        if self.failing:
            raise StoreUnavailable(reason="gone")
        await self.open.wait()
        return self.calls


async def test_a_part_that_hangs_is_read_once_and_says_since_when() -> None:
    source = Source()
    part = TimedPart(source.load, limit=0.02, fresh=0)
    assert (await part.get()).value == 1
    source.open.clear()
    began = time.time() * 1000
    first, second = await asyncio.gather(part.get(), part.get())
    assert first.value == second.value == 1, "the last value stays"
    assert first.silent_since is not None
    assert began - 1 <= first.silent_since <= time.time() * 1000
    assert (await part.get()).silent_since == first.silent_since
    assert source.calls == 2, "no calls pile up"
    source.open.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    answer = await part.get()
    assert (answer.value, answer.silent_since) == (3, None)
    await part.close()


async def test_a_part_that_fails_keeps_its_last_value_and_is_tried_again() -> None:
    source = Source()
    part = TimedPart(source.load, fresh=0)
    source.failing = True
    failed = await part.get()
    assert failed.value is None
    assert failed.silent_since is not None
    source.failing = False
    assert (await part.get()).value == 2
    assert (await part.get()).silent_since is None


async def test_a_fresh_part_is_not_read_again() -> None:
    source = Source()
    part = TimedPart(source.load, fresh=60)
    for _ in range(5):
        assert (await part.get()).value == 1
    await part.close()


async def test_a_fault_spoils_its_part_alone_and_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def fault() -> int:
        raise ZeroDivisionError

    assert (await TimedPart(fault).get()).silent_since is not None
    assert "ZeroDivisionError" in caplog.text
