"""Appends to objects.

The new bytes are a blob of their own. One transaction makes that blob the object's last part.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sluice_s3.app.errors import CommitUnknown, ConditionalRequestConflict, SourceGone
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import Appended, CommitResult, NewVersion, Version
from sluice_s3.app.store import recovery_headers
from sluice_s3.app.store.objects import MAX_SOURCE_RETRIES
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.base import BodySource


async def append(
    store: Store,
    bucket_id: int,
    key: str,
    found: Version,
    find: Callable[[], Awaitable[Version]],
    source: BodySource,
    size: int,
    describe: Callable[[Version], NewVersion],
    checksum: Callable[[], str],
    conditions: Conditions | None,
) -> tuple[NewVersion, CommitResult]:
    """Append to the object `found`, or to what `find` returns if that object was replaced.

    `size` is the number of bytes of the source before encryption. `describe` returns the new version once the hashes of
    the body are known. Raises what `find`, `describe` and the source raise, and ConditionalRequestConflict when the
    object changes too often.
    """

    def make_header() -> bytes:
        # An appended blob cannot be restored without the object before it, so it is listed like a conditional write.
        new = describe(found)._replace(size=size, parts=0)
        return recovery_headers.object_header(store.index, bucket_id, key, new, True)

    blob = await store.write_blob(source, make_header)
    try:
        for _ in range(MAX_SOURCE_RETRIES):
            new = describe(found)
            more = Appended(blob.locator, size, checksum(), new.parts)
            try:
                committed = await store.index.append(bucket_id, key, found, new, more, conditions)
            except SourceGone:
                found = await find()
                continue
            await store.confirm_blob(blob)
            return new, committed
        raise ConditionalRequestConflict()
    except CommitUnknown:
        raise  # the orphan sweeper asks the index for the outcome
    except BaseException as error:
        if isinstance(error, Exception):
            await store.discard_blob(blob)
        raise
