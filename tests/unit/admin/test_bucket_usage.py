"""Bytes and objects by bucket: counted now and then, the largest ones by name."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from sluice_s3.app.admin.bucket_usage import FRESH_SECONDS, BucketUsage
from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.buckets.queries import Usage
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.iam.rows import Account


class Index:
    """Buckets with their bytes, and how often they were counted."""

    def __init__(self, **sizes: int) -> None:
        self.sizes = sizes
        self.counts = 0
        self.fails = False

    async def accounts(self) -> list[Any]:
        return [(Account("me", "", "", False, 0), [])]

    async def buckets(self, owner_id: str, _prefix: str, after: str, limit: int) -> list[Bucket]:
        found = [Bucket(number, name, owner_id, "", 0) for number, name in enumerate(self.sizes)]
        return [bucket for bucket in found if bucket.name > after][:limit]

    async def bucket_usage(self, bucket_id: int) -> Usage:
        self.counts += 1
        if self.fails:
            raise StoreUnavailable()
        return Usage([*self.sizes.values()][bucket_id], 1)


def _usage(index: Index, most: int, clock: list[float]) -> BucketUsage:
    return BucketUsage(cast(Any, index), most, lambda: clock[0])


async def test_the_largest_have_series_and_the_rest_is_other() -> None:
    text = (await _usage(Index(a=1, b=30, c=20, d=4), 2, [0.0]).samples()).decode()
    assert [line for line in text.splitlines() if line.startswith("sluice_bucket_bytes{")] == [
        'sluice_bucket_bytes{bucket="b"} 30',
        'sluice_bucket_bytes{bucket="c"} 20',
        'sluice_bucket_bytes{bucket="other"} 5',
    ]
    assert 'sluice_bucket_objects{bucket="other"} 2\n' in text


async def test_a_scrape_counts_only_when_the_last_count_is_old() -> None:
    index, clock = Index(a=1), [0.0]
    usage = _usage(index, 2, clock)
    for _ in range(3):
        await usage.samples()
    assert index.counts == 1
    clock[0] = FRESH_SECONDS
    index.sizes["a"] = 7
    assert b'{bucket="a"} 7\n' in await usage.samples()
    assert index.counts == 2


async def test_what_was_counted_stays_when_the_index_is_away() -> None:
    index, clock = Index(a=1), [0.0]
    usage = _usage(index, 2, clock)
    await usage.samples()
    index.fails, clock[0] = True, FRESH_SECONDS
    assert b'sluice_bucket_bytes{bucket="a"} 1\n' in await usage.samples()


async def test_none_are_counted_when_it_is_off() -> None:
    index = Index(a=1)
    assert await _usage(index, 0, [0.0]).samples() == b""
    assert index.counts == 0


async def test_a_count_that_runs_ends_with_the_process() -> None:
    index = Index(a=1)
    usage = _usage(index, 1, [0.0])
    index.bucket_usage = lambda _: asyncio.sleep(3600)  # type: ignore[assignment,method-assign]
    assert await usage.samples() == b"", "zero would be wrong"
    await usage.close()
