"""Put, copy and delete objects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from sluice_s3.app.errors import ConditionalRequestConflict, NoSuchKey, NoSuchVersion, SourceGone
from sluice_s3.app.index.engine.declared import DeferredCommit
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import NULL_VERSION, CommitResult, NewVersion, Version
from sluice_s3.app.index.versioning.rows import DeleteResult, Deletion, Done
from sluice_s3.app.store import recovery_headers
from sluice_s3.app.store.driver_errors import Timings
from sluice_s3.app.store.store import Store, timed
from sluice_s3.storage_drivers.base import BodySource

MAX_SOURCE_RETRIES = 10
UNCONDITIONAL = Conditions()


async def find(store: Store, bucket_id: int, key: str, version_id: str | None = None) -> Version:
    """Return a key's current object, or the version of that id, possibly a delete marker.

    Raises NoSuchKey, NoSuchVersion.
    """
    return require_version(await store.index.version(bucket_id, key, version_id), key, version_id)


def require_version(version: Version | None, key: str, version_id: str | None) -> Version:
    """Return the version. Raises NoSuchKey or NoSuchVersion when it is None."""
    if version is None:
        if version_id is not None and version_id != NULL_VERSION:
            raise NoSuchVersion(key=key, version_id=version_id)
        raise NoSuchKey(key=key)
    return version


async def put(
    store: Store,
    bucket_id: int,
    key: str,
    source: BodySource,
    describe: Callable[[str], NewVersion],
    conditions: Conditions | None,
    timings: Timings,
) -> CommitResult:
    """Write a body and make it the key's current version.

    `describe` is called with the blob's locator once the body is durable and its hashes are known. Raises what the
    source raises, NoSuchBucket, PreconditionFailed, NoSuchKey, Overloaded, StoreUnavailable, StoreFull.
    """

    def begin() -> DeferredCommit:
        return store.index.start_put(bucket_id, key, describe, conditions)

    def make_header() -> bytes:
        conditional = conditions not in (None, UNCONDITIONAL)
        return recovery_headers.object_header(store.index, bucket_id, key, describe(""), conditional)

    return await store.write(source, timings, begin, make_header)


async def copy(
    store: Store,
    source: Callable[[], Awaitable[Version]],
    bucket_id: int,
    key: str,
    describe: Callable[[Version], Awaitable[NewVersion]],
    conditions: Conditions | None,
    timings: Timings,
) -> tuple[Version, CommitResult]:
    """Make a key's current version from another version's bytes, without writing any.

    `source` finds the version to copy and `describe` returns the new one; both are called again when the source was
    replaced in between. Raises ConditionalRequestConflict when that happens too often.
    """
    for _ in range(MAX_SOURCE_RETRIES):
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
) -> CommitResult | DeleteResult | None:
    """Delete a key's object; return None when there was none.

    In a bucket with versioning see `Index.delete_version`. Raises PreconditionFailed, NoSuchKey (If-Match),
    ObjectLocked.
    """
    return await timed(store.index.delete_version(bucket_id, key, version_id, conditions, bypass), timings)


async def delete_many(store: Store, bucket_id: int, entries: Sequence[Deletion], timings: Timings) -> list[Done]:
    """Delete the entries, independent of each other, in one transaction."""
    return await timed(store.index.delete_versions(bucket_id, entries), timings)
