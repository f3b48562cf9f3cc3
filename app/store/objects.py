"""Put, copy and delete objects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from app.errors import ConditionalRequestConflict, NoSuchKey, NoSuchVersion, SourceGone
from app.index.base import Chained, Deletion, Done
from app.index.rows import NULL_VERSION, Committed, Conditions, NewVersion, Version
from app.index.version_rows import Deleted
from app.store import claims
from app.store.calls import Timings
from app.store.store import Store, timed
from storage_drivers.base import Buffer, Source

COPY_ATTEMPTS = 10
UNCONDITIONAL = Conditions()


async def find(store: Store, bucket_id: int, key: str, version_id: str | None = None) -> Version:
    """The current object of a key, or the version of that id, which may be a delete marker.

    Raises NoSuchKey, NoSuchVersion.
    """
    return found(await store.index.version(bucket_id, key, version_id), key, version_id)


def found(version: Version | None, key: str, version_id: str | None) -> Version:
    """The version. Raises NoSuchKey, NoSuchVersion when there is none."""
    if version is None:
        if version_id is not None and version_id != NULL_VERSION:
            raise NoSuchVersion(key=key, version_id=version_id)
        raise NoSuchKey(key=key)
    return version


async def put(
    store: Store,
    bucket_id: int,
    key: str,
    source: Source,
    describe: Callable[[str], NewVersion],
    conditions: Conditions | None,
    timings: Timings,
) -> Committed:
    """Write a body and make it the key's current version.

    `describe` is called with the blob's locator once the body is durable and its hashes are known. Raises what the
    source raises, NoSuchBucket, PreconditionFailed, NoSuchKey, Overloaded, StoreUnavailable, StoreFull.
    """
    begin, claim = _change(store, bucket_id, key, describe, conditions)
    return await store.write(source, timings, begin, claim)


def begin_put(
    store: Store,
    bucket_id: int,
    key: str,
    piece: Buffer,
    source: Source,
    describe: Callable[[str], NewVersion],
    conditions: Conditions | None,
    timings: Timings,
) -> asyncio.Future[Committed]:
    """`put` of a small body that is here whole, without an await. Raises NotNow, and nothing has happened then."""
    begin, claim = _change(store, bucket_id, key, describe, conditions)
    return store.begin_write(piece, source, timings, begin, claim)


def _change(
    store: Store, bucket_id: int, key: str, describe: Callable[[str], NewVersion], conditions: Conditions | None
) -> tuple[Callable[[], Chained], Callable[[], bytes]]:
    def begin() -> Chained:
        return store.index.begin_put(bucket_id, key, describe, conditions)

    def claim() -> bytes:
        return claims.of_put(bucket_id, key, describe(""), conditions not in (None, UNCONDITIONAL))

    return begin, claim


async def copy(
    store: Store,
    source: Callable[[], Awaitable[Version]],
    bucket_id: int,
    key: str,
    describe: Callable[[Version], Awaitable[NewVersion]],
    conditions: Conditions | None,
    timings: Timings,
) -> tuple[Version, Committed]:
    """Make a key's current version from another version's bytes, without writing any.

    `source` finds the version to copy and `describe` says what the new one is; both are asked again when the source
    was replaced in between. Raises ConditionalRequestConflict when that happens too often.
    """
    for _ in range(COPY_ATTEMPTS):
        found = await source()
        new = await describe(found)
        try:
            committed = await timed(store.index.copy_version(found.seq, bucket_id, key, new, conditions), timings)
        except SourceGone:
            continue
        return found, committed
    raise ConditionalRequestConflict()


async def delete(
    store: Store,
    bucket_id: int,
    key: str,
    version_id: str | None,
    conditions: Conditions | None,
    timings: Timings,
    bypass: bool = False,
) -> Committed | Deleted | None:
    """Delete a key's object; None when there was none. Raises PreconditionFailed, NoSuchKey (If-Match), ObjectLocked.

    Where versions are kept, see `Index.delete_version`.
    """
    return await timed(store.index.delete_version(bucket_id, key, version_id, conditions, bypass), timings)


def begin_delete(
    store: Store, bucket_id: int, key: str, version_id: str | None, conditions: Conditions | None, bypass: bool
) -> asyncio.Future[Committed | Deleted | None]:
    """`delete` without an await, and without its time. Raises NotNow."""
    return store.index.begin_delete(bucket_id, key, version_id, conditions, bypass)


async def delete_many(store: Store, bucket_id: int, entries: Sequence[Deletion], timings: Timings) -> list[Done]:
    """Delete each entry alone, all in one transaction."""
    return await timed(store.index.delete_versions(bucket_id, entries), timings)
