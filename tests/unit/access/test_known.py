"""What requests look up is remembered only as long as the index says that nothing changed."""

from __future__ import annotations

import pytest

from sluice_s3.app.access.lookup_cache import LookupCache
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.iam.rows import AccessKey

KEY = AccessKey("KEY", "secret", "account", "name", False)
BUCKET = Bucket(1, "bucket", "account", "us-east-1", 0)


class Index:
    """An index that counts what it is asked."""

    def __init__(self) -> None:
        self.generation = 7
        self.asked: list[str] = []
        self.there = True

    async def access_key(self, access_key: str) -> AccessKey | None:
        self.asked.append(access_key)
        return KEY if self.there else None

    async def bucket(self, name: str) -> Bucket | None:
        self.asked.append(name)
        return BUCKET if self.there else None


@pytest.fixture
def index() -> Index:
    return Index()


@pytest.fixture
def known(index: Index) -> LookupCache:
    return LookupCache(index)  # type: ignore[arg-type]


async def test_asked_once(index: Index, known: LookupCache) -> None:
    for _ in range(3):
        assert await known.key("KEY") == KEY
        assert await known.bucket("bucket") == BUCKET
    assert index.asked == ["KEY", "bucket"]
    assert known.entries() == ({"KEY": KEY}, {"bucket": BUCKET})


async def test_asked_again_when_the_generation_moves(index: Index, known: LookupCache) -> None:
    assert await known.key("KEY")
    assert await known.bucket("bucket")
    index.generation += 1
    index.there = False
    assert await known.key("KEY") is None
    assert await known.bucket("bucket") is None


async def test_asked_again_when_it_is_old(index: Index, known: LookupCache, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await known.key("KEY")
    assert await known.bucket("bucket")
    monkeypatch.setattr("sluice_s3.app.access.lookup_cache.monotonic", lambda: 1e12)
    assert await known.key("KEY")
    assert await known.bucket("bucket")
    assert index.asked == ["KEY", "bucket"] * 2


async def test_what_is_not_there_is_not_remembered(index: Index, known: LookupCache) -> None:
    index.there = False
    assert await known.bucket("bucket") is None
    assert await known.key("KEY") is None
    index.there = True
    assert await known.bucket("bucket") == BUCKET
    assert await known.key("KEY") == KEY


async def test_what_was_read_before_a_change_is_not_remembered_after_it(index: Index, known: LookupCache) -> None:
    """An engine that waits: the row was read, the generation moved, and another request refreshed the cache."""

    async def slow(name: str) -> Bucket | None:
        index.generation += 1
        assert known.entries() == ({}, {})
        return BUCKET

    index.bucket = slow  # type: ignore[method-assign]
    assert await known.bucket("bucket") == BUCKET
    assert known.entries() == ({}, {})


async def test_no_more_than_so_many(index: Index, known: LookupCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_s3.app.access.lookup_cache.MAX_ENTRIES", 2)
    for name in ("a", "b", "c", "c"):
        assert await known.bucket(name)
    assert index.asked == ["a", "b", "c", "c"]
