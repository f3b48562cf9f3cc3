"""Multipart uploads: parts are blobs of their own, Complete only says which of them make the object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from app.errors import ConditionalRequestConflict, EntityTooSmall, InvalidPart, NoSuchUpload, SourceGone
from app.index.base import extents_of
from app.index.rows import Committed, Conditions, Extent, NewVersion, Part, Upload, Version
from app.store import claims
from app.store.calls import Timings
from app.store.objects import COPY_ATTEMPTS
from app.store.reading import extents
from app.store.store import Store, timed
from storage_drivers.base import Source

MIN_PART = 5 * 1024 * 1024
"""Least bytes of every part but the last ("Amazon S3 multipart upload limits")."""
MAX_PARTS = 10_000


async def find(store: Store, bucket_id: int, key: str, upload_id: str) -> Upload:
    """The open upload of that id for that key. Raises NoSuchUpload."""
    upload = await store.index.upload(bucket_id, key, upload_id)
    if upload is None or upload.completed_seq:
        raise NoSuchUpload(upload_id=upload_id)
    return upload


async def put_part(
    store: Store, upload: Upload, source: Source, describe: Callable[[tuple[Extent, ...]], Part], timings: Timings
) -> Committed:
    """Write a part's body; `describe` is called once it is durable and its hashes are known. Raises NoSuchUpload."""

    def part(locator: str) -> Part:
        made = describe(())
        return made._replace(extents=extents_of(locator, made.size))  # encrypted, the blob has more bytes

    return await store.write(
        source, timings, lambda: store.index.begin_part(upload, part), lambda: claims.of_part(upload, part(""))
    )


async def copy_part(
    store: Store,
    source: Callable[[], Awaitable[Version]],
    upload: Upload,
    describe: Callable[[Version], Awaitable[tuple[Part, int, int]]],
    timings: Timings,
) -> tuple[Version, Part, Committed]:
    """Make a part of bytes that another version holds, without writing any.

    `describe` gives the part (its extents are filled in here), and offset and length of its bytes in the version.
    """
    for _ in range(COPY_ATTEMPTS):
        found = await source()
        part, offset, length = await describe(found)
        held = tuple([extent async for extent in extents(store, found, offset, length)])
        part = part._replace(extents=held)
        try:
            committed = await timed(store.index.copy_part(found.seq, upload, part), timings)
        except SourceGone:
            continue
        return found, part, committed
    raise ConditionalRequestConflict()


async def choose(store: Store, upload: Upload, named: Sequence[tuple[int, str]]) -> list[Part]:
    """The uploaded parts that Complete names as (number, ETag). Raises InvalidPart, EntityTooSmall."""
    uploaded = {part.number: part for part in await store.index.parts(upload, 0, MAX_PARTS)}
    chosen: list[Part] = []
    for number, etag in named:
        part = uploaded.get(number)
        if part is None or part.etag != etag:
            raise InvalidPart(upload_id=upload.upload_id, part_number=number, etag=etag)
        chosen.append(part)
    for part in chosen[:-1]:
        if part.size < MIN_PART:
            raise EntityTooSmall(size=part.size, minimum=MIN_PART, part_number=part.number, etag=part.etag)
    return chosen


async def complete(
    store: Store,
    upload: Upload,
    chosen: Sequence[Part],
    new: NewVersion,
    conditions: Conditions | None,
    timings: Timings,
) -> Committed:
    """Make the chosen parts the key's current version. Raises NoSuchUpload, InvalidPart, PreconditionFailed."""
    return await timed(store.index.complete_upload(upload, chosen, new, conditions), timings)
