"""A process that has no memory for a moment answers 503 meanwhile, and goes on afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.postgres import batched_lookup
from sluice_s3.app.index.postgres.index import PostgresIndex
from tests.support.waiting import eventually_async
from tests.unit.index.tools import new


def fail_once(patch: pytest.MonkeyPatch, owner: object, name: str, of: str) -> Callable[[], bool]:
    """Let the next call of a method that is for `of` find no memory; returns whether that happened."""
    method, failed = getattr(owner, name), []

    def call(*given: Any, **options: Any) -> Any:
        if not failed and of in repr(given):
            failed.append(True)
            for one in given:
                if asyncio.iscoroutine(one):
                    one.close()
            raise MemoryError
        return method(*given, **options)

    patch.setattr(owner, name, call)
    return lambda: bool(failed)


@pytest.mark.parametrize(
    ("method", "of"), [("call_soon", "_start_batches"), ("create_task", "VersionLoader._run")], ids=["turn", "task"]
)
async def test_lookups_go_on(
    one: PostgresIndex, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, method: str, of: str
) -> None:
    await one.put_version(bucket.id, "key", new("blob"))
    happened = fail_once(monkeypatch, asyncio.get_running_loop(), method, of)
    async with asyncio.timeout(20):
        with pytest.raises((MemoryError, StoreUnavailable)):
            await one.version(bucket.id, "key")
        assert happened()
        found = await asyncio.gather(*(one.version(bucket.id, "key") for _ in range(3)))
    assert all(version is not None and version.key == "key" for version in found)


async def test_a_lookup_that_finds_no_memory_ends(
    one: PostgresIndex, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(batched_lookup, "query_with_retry", fail)
        async with asyncio.timeout(20):
            with pytest.raises(StoreUnavailable):
                await one.version(bucket.id, "key")
    assert await one.version(bucket.id, "key") is None


@pytest.mark.parametrize(
    ("method", "of"), [("call_soon", "_dispatch"), ("create_task", "CommitScheduler._run")], ids=["turn", "task"]
)
async def test_commits_go_on(
    one: PostgresIndex, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, method: str, of: str
) -> None:
    happened = fail_once(monkeypatch, asyncio.get_running_loop(), method, of)
    async with asyncio.timeout(20):
        with pytest.raises((MemoryError, StoreUnavailable)):
            await one.put_version(bucket.id, "key", new("blob"))
        assert happened()
        await one.put_version(bucket.id, "key", new("other blob"))
    version = await one.version(bucket.id, "key")
    assert version is not None


async def test_a_gateway_that_finds_no_memory_to_try_again_is_not_away_for_ever(
    one: PostgresIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened = fail_once(monkeypatch, asyncio.get_running_loop(), "create_task", "Database._try")
    with pytest.raises(MemoryError):
        one.database.mark_down()
    assert happened()
    assert not one.database.is_down
    one.database.mark_down()
    assert one.database.is_down
    await eventually_async(lambda: not one.database.is_down, "Postgres answers again")
