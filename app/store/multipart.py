"""Multipart uploads: parts are blobs of their own; Complete only chooses which make the object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from sluice_s3.app.errors import ConditionalRequestConflict, EntityTooSmall, InvalidPart, NoSuchUpload, SourceGone
from sluice_s3.app.index.multipart.rows import Extent, Part, Upload, extents_of
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import CommitResult, NewVersion, Version
from sluice_s3.app.store import recovery_headers
from sluice_s3.app.store.driver_errors import Timings
from sluice_s3.app.store.objects import MAX_SOURCE_RETRIES
from sluice_s3.app.store.reading import extents
from sluice_s3.app.store.store import Store, timed
from sluice_s3.storage_drivers.base import BodySource

MIN_PART = 5 * 1024 * 1024
"""Minimum bytes of every part but the last ("Amazon S3 multipart upload limits")."""
MAX_PARTS = 10_000


async def find_upload(store: Store, bucket_id: int, key: str, upload_id: str) -> Upload:
    """Return the open upload of that id for that key. Raises NoSuchUpload."""
    upload = await store.index.upload(bucket_id, key, upload_id)
    if upload is None or upload.completed_seq:
        raise NoSuchUpload(upload_id=upload_id)
    return upload


async def put_part(
    store: Store, upload: Upload, source: BodySource, describe: Callable[[tuple[Extent, ...]], Part], timings: Timings
) -> CommitResult:
    """Write a part's body.

    `describe` is called once the body is durable and its hashes are known. Raises NoSuchUpload.
    """

    def part(locator: str) -> Part:
        described = describe(())
        return described._replace(extents=extents_of(locator, described.size))  # an encrypted blob has more bytes

    return await store.write(
        source,
        timings,
        lambda: store.index.start_part(upload, part),
        lambda: recovery_headers.part_header(upload, part("")),
    )


async def copy_part(
    store: Store,
    source: Callable[[], Awaitable[Version]],
    upload: Upload,
    describe: Callable[[Version], Awaitable[tuple[Part, int, int]]],
    timings: Timings,
) -> tuple[Version, Part, CommitResult]:
    """Make a part of bytes of another version, without writing any.

    `describe` returns the part (without extents, which are added here), and the offset and length of its bytes in the
    version.
    """
    for _ in range(MAX_SOURCE_RETRIES):
        found = await source()
        part, offset, length = await describe(found)
        copied_extents = tuple([extent async for extent in extents(store, found, offset, length)])
        part = part._replace(extents=copied_extents)
        try:
            committed = await timed(store.index.copy_part(found.seq, upload, part), timings)
        except SourceGone:
            continue
        return found, part, committed
    raise ConditionalRequestConflict()


async def choose(store: Store, upload: Upload, named: Sequence[tuple[int, str]]) -> list[Part]:
    """Return the uploaded parts that Complete names as (number, ETag). Raises InvalidPart, EntityTooSmall."""
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
) -> CommitResult:
    """Make the chosen parts the key's current version. Raises NoSuchUpload, InvalidPart, PreconditionFailed."""
    return await timed(store.index.complete_upload(upload, chosen, new, conditions), timings)
