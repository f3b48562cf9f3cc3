"""A bucket's quota is asked of what was counted, and of what was let in since."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.errors import QuotaExceeded
from sluice_s3.app.index.buckets.queries import Usage
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.server.shared_memory.quota_ledger import SLOTS, QuotaLedger
from sluice_s3.app.store.quotas import Quota, Quotas, quota_of, to_setting


class Counting:
    """An index that says how much a bucket holds, and how often it was asked. Asking takes `cost` seconds."""

    def __init__(self, *held: int) -> None:
        self.held = Usage(*held)
        self.asked = 0
        self.now = 1000.0
        self.cost = 0.0

    async def bucket_usage(self, bucket_id: int) -> Usage:
        self.asked += 1
        self.now += self.cost
        found = self.held
        await asyncio.sleep(0)
        return found


def bucket(settings: str) -> Bucket:
    return Bucket(7, "b", "owner", "us-east-1", 0, settings=settings)


BOTH = bucket('{"quota":{"bytes":100,"objects":3}}')


def quotas(index: Any) -> Quotas:
    return Quotas(index, lambda: index.now)


async def put(counts: Quotas, *asked: Any, of: Bucket = BOTH) -> None:
    async with counts.room(of) as room:
        await room.take(*asked)


async def refused(counts: Quotas, *asked: Any, of: Bucket = BOTH) -> None:
    with pytest.raises(QuotaExceeded):
        await put(counts, *asked, of=of)


def test_settings() -> None:
    assert quota_of(bucket("")) is None
    assert quota_of(bucket('{"tags":{"a":"b"}}')) is None
    assert quota_of(BOTH) == Quota(100, 3)
    assert to_setting(Quota(1)) == {"bytes": 1, "objects": None}
    assert to_setting(Quota()) is None


async def test_what_has_no_quota_is_never_counted() -> None:
    index = Counting(1, 1)
    await put(quotas(index), 1 << 40, of=bucket('{"tags":{"a":"b"}}'))
    assert index.asked == 0


async def test_up_to_the_quota_and_no_further() -> None:
    index = Counting(40, 1)
    index.cost = 1.0
    counts = quotas(index)
    await refused(counts, 61)
    await put(counts, 60)
    await refused(counts, 1)
    await put(counts, 0)
    await refused(counts, 0)  # three objects
    await put(counts, 0, 0)
    await refused(counts, None, 0)  # of unknown size, into a full bucket
    assert index.asked == 1


async def test_space_that_comes_back_is_seen_at_once_where_counting_is_cheap() -> None:
    index = Counting(100, 3)
    counts = quotas(index)
    await refused(counts, 10)
    index.held = Usage(50, 2)
    await put(counts, 10)


async def test_counting_is_a_twentieth_of_the_time() -> None:
    index = Counting(100, 3)
    index.cost = 2.0
    counts = quotas(index)
    await refused(counts, 10)
    assert index.asked == 1
    index.held = Usage(0, 0)
    index.now += 37.0
    await refused(counts, 10)
    assert index.asked == 1
    index.now += 1.0
    await put(counts, 10)
    assert index.asked == 2


async def test_a_count_is_good_for_a_second() -> None:
    index = Counting(0, 0)
    counts = quotas(index)
    await put(counts, 1)
    index.held = Usage(100, 1)  # another worker
    index.now += 0.9
    await put(counts, 1)
    assert index.asked == 1
    index.now += 0.1
    await refused(counts, 1)
    assert index.asked == 2


async def test_what_is_on_its_way_counts_until_it_fails() -> None:
    index = Counting(0, 0)
    counts = quotas(index)

    async def broken() -> None:
        async with counts.room(BOTH) as room:
            await room.take(70)
            await refused(counts, 70)
            await room.take(20)  # another try of the same write
            await put(counts, 70)
            index.held = Usage(70, 1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await broken()
    await put(counts, 30)
    index.held = Usage(100, 2)
    await refused(counts, 1)


async def test_many_at_once_do_not_pass_it_together() -> None:
    index = Counting(0, 0)
    counts = quotas(index)
    over, refusals = asyncio.Event(), 0

    async def write() -> None:
        nonlocal refusals
        try:
            async with counts.room(BOTH) as room:
                await room.take(30, 0)
                await over.wait()
        except QuotaExceeded:
            refusals += 1
            if refusals == 7:
                over.set()
            raise

    results = await asyncio.gather(*(write() for _ in range(10)), return_exceptions=True)
    assert results.count(None) == 3


async def test_workers_of_a_gateway_see_what_each_lets_in(tmp_path: Path) -> None:
    index = Counting(0, 0)
    index.cost = 1.0  # counts are good for 20 seconds
    QuotaLedger(tmp_path / "quotas", 2, create=True)
    given: Any = index
    one, two = (Quotas(given, lambda: index.now, QuotaLedger(tmp_path / "quotas", 2, place)) for place in (0, 1))
    await put(two, 1)
    index.held = Usage(1, 1)
    async with one.room(BOTH) as room:
        await room.take(60)
        await refused(two, 40)
        await room.take(50)  # another try of the same write
        await put(two, 40)
    await refused(two, 10, 0)
    await put(two, 9, 0)
    await refused(two, 0)  # of three objects the last has come, though it is not counted
    assert index.asked == 2
    index.held = Usage(10, 1)
    index.now += 30
    await put(two, 90)
    index.held = Usage(100, 2)
    await refused(one, 1)


async def test_what_is_on_its_way_into_another_bucket_counts_there_alone(tmp_path: Path) -> None:
    index: Any = Counting(0, 0)
    QuotaLedger(tmp_path / "quotas", 2, create=True)
    one, two = (Quotas(index, lambda: index.now, QuotaLedger(tmp_path / "quotas", 2, place)) for place in (0, 1))
    wide = Bucket(7, "wide", "owner", "us-east-1", 0, settings='{"quota":{"bytes":1000000}}')
    async with one.room(wide) as room:
        await room.take(5000)
        async with two.room(BOTH._replace(id=7 + SLOTS)) as other:  # the same slot
            await other.take(60)
            await refused(one, 41, of=BOTH._replace(id=7 + SLOTS))
            await put(one, 40, of=BOTH._replace(id=7 + SLOTS))
            await refused(two, 995_001, of=wide)
            await put(two, 10, of=wide)
