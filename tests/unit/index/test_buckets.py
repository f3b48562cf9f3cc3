"""Buckets."""

import pytest

from sluice_s3.app.errors import (
    BucketAlreadyExists,
    BucketAlreadyOwnedByYou,
    BucketNotEmpty,
    NoSuchBucket,
    TooManyBuckets,
)
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.tools import OTHER, OWNER, new, part


async def test_a_bucket_is_found_by_name(index: SqliteIndex) -> None:
    made = await index.create_bucket("one", OWNER, "eu-west-1", 10)
    assert (made.name, made.owner_id, made.region) == ("one", OWNER, "eu-west-1")
    assert await index.bucket("one") == made
    assert await index.bucket("two") is None


async def test_a_taken_name_says_whose_it_is(index: SqliteIndex, bucket: Bucket) -> None:
    with pytest.raises(BucketAlreadyOwnedByYou):
        await index.create_bucket(bucket.name, OWNER, "r", 10)
    with pytest.raises(BucketAlreadyExists):
        await index.create_bucket(bucket.name, OTHER, "r", 10)


async def test_the_limit_is_an_owners(index: SqliteIndex, bucket: Bucket) -> None:
    with pytest.raises(TooManyBuckets):
        await index.create_bucket("another", OWNER, "r", 1)
    await index.create_bucket("another", OTHER, "r", 1)


async def test_an_id_is_never_used_again(index: SqliteIndex, bucket: Bucket) -> None:
    await index.delete_bucket(bucket.id)
    again = await index.create_bucket(bucket.name, OWNER, "r", 10)
    assert again.id > bucket.id
    with pytest.raises(NoSuchBucket):
        await index.delete_bucket(bucket.id)


async def test_pages_of_an_owners_buckets(index: SqliteIndex) -> None:
    for name in ("b", "aa", "ab", "ab-c", "c"):
        await index.create_bucket(name, OWNER, "r", 10)
    await index.create_bucket("ad", OTHER, "r", 10)

    async def names(prefix: str, after: str, limit: int) -> list[str]:
        return [found.name for found in await index.buckets(OWNER, prefix, after, limit)]

    assert await names("", "", 10) == ["aa", "ab", "ab-c", "b", "c"]
    assert await names("", "", 2) == ["aa", "ab"]
    assert await names("", "ab", 10) == ["ab-c", "b", "c"]
    assert await names("ab", "", 10) == ["ab", "ab-c"]
    assert await names("ab", "aa", 10) == ["ab", "ab-c"]
    assert await names("ab", "ab", 10) == ["ab-c"]
    assert await names("ab", "b", 10) == []


async def test_a_bucket_with_an_object_stays(index: SqliteIndex, bucket: Bucket) -> None:
    await index.put_version(bucket.id, "k", new("blob"))
    with pytest.raises(BucketNotEmpty):
        await index.delete_bucket(bucket.id)
    await index.delete_version(bucket.id, "k")
    await index.delete_bucket(bucket.id)
    assert await index.bucket(bucket.name) is None


async def test_nothing_is_put_into_a_deleted_bucket(index: SqliteIndex, bucket: Bucket) -> None:
    await index.delete_bucket(bucket.id)
    with pytest.raises(NoSuchBucket):
        await index.put_version(bucket.id, "k", new("blob"))
    with pytest.raises(NoSuchBucket):
        await index.create_upload(bucket.id, "k", "{}", "STANDARD", "", "", OWNER)
    assert await index.delete_version(bucket.id, "k") is None


async def test_open_uploads_end_with_their_bucket(index: SqliteIndex, bucket: Bucket) -> None:
    upload = await index.create_upload(bucket.id, "k", "{}", "STANDARD", "", "", OWNER)
    await index.put_part(upload, part(1, "blob"))
    await index.delete_bucket(bucket.id)
    assert await index.upload(bucket.id, "k", upload.upload_id) is None
    (queued,) = await index.discards(0, 10)
    assert queued.body == f"{PIECES}{upload.id}"
