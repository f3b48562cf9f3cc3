"""Put, copy and delete objects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from app.errors import ConditionalRequestConflict, NoSuchKey, NoSuchVersion, SourceGone
from app.index.base import Deletion
from app.index.rows import NULL_VERSION, Committed, Conditions, NewVersion, Version
from app.store import claims
from app.store.store import Store, Timings, timed
from storage_drivers.base import Source

COPY_ATTEMPTS = 10
UNCONDITIONAL = Conditions()


async def find(store: Store, bucket_id: int, key: str, version_id: str | None = None) -> Version:
    """The current object of a key, or the version of that id. Raises NoSuchKey, NoSuchVersion."""
    version = await store.index.version(bucket_id, key, version_id)
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
    return await store.write(
        source,
        timings,
        lambda: store.index.begin_put(bucket_id, key, describe, conditions),
        lambda: claims.of_put(bucket_id, key, describe(""), conditions not in (None, UNCONDITIONAL)),
    )


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
    store: Store, bucket_id: int, key: str, version_id: str | None, conditions: Conditions | None, timings: Timings
) -> Committed | None:
    """Delete a key's object; None when there was none. Raises PreconditionFailed, NoSuchKey (If-Match)."""
    return await timed(store.index.delete_version(bucket_id, key, version_id, conditions), timings)


async def delete_many(
    store: Store, bucket_id: int, entries: Sequence[Deletion], timings: Timings
) -> list[Committed | Exception | None]:
    """Delete each entry alone, all in one transaction."""
    return await timed(store.index.delete_versions(bucket_id, entries), timings)
