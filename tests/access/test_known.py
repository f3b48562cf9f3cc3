"""What requests look up is remembered only as long as the index says that nothing changed."""

from __future__ import annotations

import pytest

from app.access.known import Known
from app.errors import NotNow
from app.index.rows import AccessKey, Bucket

KEY = AccessKey("KEY", "secret", "account", "name", False)
BUCKET = Bucket(1, "bucket", "account", "us-east-1", 0)


class Index:
    """An index that counts what it is asked."""

    def __init__(self) -> None:
        self.generation = 7
        self.asked: list[str] = []
        self.immediate = True
        self.there = True

    async def access_key(self, access_key: str) -> AccessKey | None:
        self.asked.append(access_key)
        return KEY if self.there else None

    def access_key_now(self, access_key: str) -> AccessKey | None:
        if not self.immediate:
            raise NotNow
        self.asked.append(access_key)
        return KEY if self.there else None

    async def bucket(self, name: str) -> Bucket | None:
        self.asked.append(name)
        return BUCKET if self.there else None

    def bucket_now(self, name: str) -> Bucket | None:
        if not self.immediate:
            raise NotNow
        self.asked.append(name)
        return BUCKET if self.there else None


@pytest.fixture
def index() -> Index:
    return Index()


@pytest.fixture
def known(index: Index) -> Known:
    return Known(index)  # type: ignore[arg-type]


async def test_asked_once(index: Index, known: Known) -> None:
    for _ in range(3):
        assert await known.key("KEY") == known.key_now("KEY") == KEY
        assert await known.bucket("bucket") == known.bucket_now("bucket") == BUCKET
    assert index.asked == ["KEY", "bucket"]


async def test_asked_again_when_the_generation_moves(index: Index, known: Known) -> None:
    assert known.key_now("KEY")
    assert await known.bucket("bucket")
    index.generation += 1
    index.there = False
    assert known.key_now("KEY") is None
    assert known.bucket_now("bucket") is None


async def test_asked_again_when_it_is_old(index: Index, known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    assert known.key_now("KEY")
    assert known.bucket_now("bucket")
    monkeypatch.setattr("app.access.known.monotonic", lambda: 1e12)
    assert await known.key("KEY")
    assert await known.bucket("bucket")
    assert index.asked == ["KEY", "bucket"] * 2


async def test_what_is_not_there_is_not_remembered(index: Index, known: Known) -> None:
    index.there = False
    assert await known.bucket("bucket") is None
    assert known.key_now("KEY") is None
    index.there = True
    assert known.bucket_now("bucket") == BUCKET
    assert await known.key("KEY") == KEY


async def test_what_was_read_before_a_change_is_not_remembered_after_it(index: Index, known: Known) -> None:
    """An engine that waits: the row was read, the generation moved, and another request refreshed the cache."""

    async def slow(name: str) -> Bucket | None:
        index.generation += 1
        index.there = False
        assert known.bucket_now(name) is None
        return BUCKET

    index.bucket = slow  # type: ignore[method-assign]
    assert await known.bucket("bucket") == BUCKET
    assert known.bucket_now("bucket") is None


async def test_an_engine_that_must_wait(index: Index, known: Known) -> None:
    index.immediate = False
    with pytest.raises(NotNow):
        known.bucket_now("bucket")
    assert await known.bucket("bucket") == BUCKET
    assert known.bucket_now("bucket") == BUCKET


async def test_no_more_than_so_many(index: Index, known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.access.known.MAX_ENTRIES", 2)
    for name in ("a", "b", "c", "c"):
        assert known.bucket_now(name)
    assert index.asked == ["a", "b", "c", "c"]
