"""Changes that wait for their blob: they end once, whoever ends them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from sluice_s3.app.errors import NoSuchBucket, Overloaded, PreconditionFailed, StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import NewVersion
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.tools import OWNER, new, open_at


@pytest.fixture
def bucket_id(bucket: Bucket) -> int:
    return bucket.id


def in_thread(call: object, *arguments: object) -> None:
    thread = threading.Thread(target=call, args=arguments)  # type: ignore[arg-type]
    thread.start()
    thread.join()


async def test_proceeds_from_another_thread(index: SqliteIndex, bucket_id: int) -> None:
    chained = index.start_put(bucket_id, "key", new)
    in_thread(chained.proceed, "p:1.2.3.4")
    committed = await chained.future
    found = await index.version(bucket_id, "key")
    assert found is not None
    assert (found.seq, found.body) == (committed.seq, "p:1.2.3.4")


async def test_is_refused_as_an_awaited_change_is(index: SqliteIndex, bucket_id: int) -> None:
    await index.put_version(bucket_id, "key", new("p:1"))
    taken = index.start_put(bucket_id, "key", new, Conditions(if_none_match=True))
    gone = index.start_put(bucket_id + 1, "key", new)
    for chained in (taken, gone):
        in_thread(chained.proceed, "p:2")
    with pytest.raises(PreconditionFailed):
        await taken.future
    with pytest.raises(NoSuchBucket):
        await gone.future


async def test_a_failed_blob_fails_the_change(index: SqliteIndex, bucket_id: int) -> None:
    chained = index.start_put(bucket_id, "key", new)
    in_thread(chained.fail, StoreUnavailable(reason="no space"))
    with pytest.raises(StoreUnavailable):
        await chained.future
    assert await index.version(bucket_id, "key") is None


async def test_a_description_that_fails_fails_the_change(index: SqliteIndex, bucket_id: int) -> None:
    def refuse(locator: str) -> NewVersion:
        raise LookupError(locator)

    chained = index.start_put(bucket_id, "key", refuse)
    in_thread(chained.proceed, "p:1")
    with pytest.raises(LookupError):
        await chained.future


async def test_an_abandoned_change_never_happens(index: SqliteIndex, bucket_id: int) -> None:
    chained = index.start_put(bucket_id, "key", new)
    chained.abandon()
    in_thread(chained.proceed, "p:1")
    await index.put_version(bucket_id, "other", new("p:2"))  # behind it in the queue
    assert await index.version(bucket_id, "key") is None


async def test_a_blob_that_takes_too_long(directory: Path) -> None:
    """Its time runs from the beginning; the blob that comes later changes nothing."""
    index: SqliteIndex = open_at(directory, commit_timeout=0.05)
    await index.start()
    try:
        bucket = await index.create_bucket("bucket", OWNER, "us-east-1", 10)
        chained = index.start_put(bucket.id, "key", new)
        with pytest.raises(Overloaded):
            await chained.future
        in_thread(chained.proceed, "p:1")
        in_thread(chained.fail, StoreUnavailable())
        await asyncio.sleep(0)
        await index.put_version(bucket.id, "other", new("p:2"))
        assert await index.version(bucket.id, "key") is None
    finally:
        await index.close()


async def test_a_closed_index_begins_nothing(directory: Path) -> None:
    index: SqliteIndex = open_at(directory)
    await index.start()
    await index.close()
    with pytest.raises(StoreUnavailable):
        index.start_put(1, "key", new)
