"""Bytes behind those that an object has: a blob of their own, which one transaction makes the object's last part."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from app.errors import CommitUnknown, ConditionalRequestConflict, SourceGone
from app.index.rewrites import Appended
from app.index.rows import Committed, Conditions, NewVersion, Version
from app.store import claims
from app.store.objects import COPY_ATTEMPTS
from app.store.store import Store
from storage_drivers.base import Source


async def append(
    store: Store,
    bucket_id: int,
    key: str,
    found: Version,
    find: Callable[[], Awaitable[Version]],
    source: Source,
    size: int,
    describe: Callable[[Version], NewVersion],
    checksum: Callable[[], str],
    conditions: Conditions | None,
) -> tuple[NewVersion, Committed]:
    """Append to the object that was `found`, or to what `find` finds when that is another one by then.

    `size` is bytes of the source before it is encrypted. `describe` says what comes of an object, once the hashes of
    the body are known. Raises what these two and the source raise, and ConditionalRequestConflict when the object
    changes too often.
    """

    def claim() -> bytes:
        # it cannot be restored without what it was appended to, and so is listed then, as what carried a condition
        return claims.of_put(bucket_id, key, describe(found)._replace(size=size, parts=0), True)

    kept = await store.keep(source, claim)
    try:
        for _ in range(COPY_ATTEMPTS):
            new = describe(found)
            more = Appended(kept.locator, size, checksum(), new.parts)
            try:
                committed = await store.index.append(bucket_id, key, found, new, more, conditions)
            except SourceGone:
                found = await find()
                continue
            await store.settle(kept)
            return new, committed
        raise ConditionalRequestConflict()
    except CommitUnknown:
        raise  # the sweep asks the index what became of it
    except BaseException as error:
        if isinstance(error, Exception):
            await store.drop(kept)
        raise
