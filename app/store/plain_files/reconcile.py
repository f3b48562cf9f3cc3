"""Reconciliation of a bucket: rows for others' files, none for vanished files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.plain_files.rows import ExternalFile as NewRow
from sluice_s3.app.index.plain_files.rows import is_plain_file
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.plain_files.reads import external_file_row
from sluice_s3.app.store.plain_files.writes import PlainFiles
from sluice_s3.storage_drivers.tree import ScannedFile, SkippedCounts

FILES_PER_BATCH = 500
"""Rows of one transaction."""


@dataclass(slots=True)
class ReconcileReport:
    """The result of a scan."""

    counts: SkippedCounts = field(default_factory=SkippedCounts)
    adopted: int = 0
    """Files that other programs wrote, now with rows."""
    vanished: int = 0
    """Rows deleted because other programs removed the file."""
    deferred: int = 0
    """Files that are being changed now: the next scan or the next reader handles them."""


Progress = Callable[[ReconcileReport], None]


async def reconcile_bucket(tree: PlainFiles, bucket: Bucket, progress: Progress = lambda _: None) -> ReconcileReport:
    """Compare every file of a bucket with every row.

    Raises StoreUnavailable when the store is not mounted.
    """
    report = ReconcileReport()
    with translate_driver_errors():
        async for batch in tree.files.scan(bucket.name, report.counts):
            for first in range(0, len(batch), FILES_PER_BATCH):
                await adopt(tree, bucket, batch[first : first + FILES_PER_BATCH], report)
            progress(report)
    await forget_vanished(tree, bucket, report)
    progress(report)
    return report


async def adopt(tree: PlainFiles, bucket: Bucket, files: Sequence[ScannedFile], report: ReconcileReport) -> None:
    """Correct the rows of some keys to match their files."""
    position = await tree.index.position()
    new: list[NewRow] = []
    for file in files:
        version = await tree.index.version(bucket.id, file.key)
        if version is not None and not is_plain_file(version.body):
            continue
        path, stamp = (file.path, None) if version is None else tree.parse(version.body)
        if path != file.path or stamp == file.stamp:
            continue  # the index says which of two files for one key counts
        if not tree.files.is_settled(file.stamp):
            report.deferred += 1
            continue
        seen = 0 if version is None else version.seq
        new.append(external_file_row(file.key, tree.body_of(file.path, file.stamp), file.stamp, seen))
    new = await _unchanged(tree, new)
    if new:
        sequences = await tree.index.adopt(bucket.id, bucket.owner_id, position, new)
        report.adopted += sum(1 for seq in sequences if seq)
        report.deferred += sequences.count(0)


async def _unchanged(tree: PlainFiles, new: list[NewRow]) -> list[NewRow]:
    """Return the rows whose file is unchanged.

    The row was read after the file, so both existed at the same time.
    """
    locations = [tree.parse(row.body) for row in new]
    stamps = await tree.files.find_all([path for path, _ in locations]) if new else []
    return [row for row, (_, expected), stamp in zip(new, locations, stamps, strict=True) if stamp == expected]


async def forget_vanished(tree: PlainFiles, bucket: Bucket, report: ReconcileReport) -> None:
    """Delete the rows of a bucket whose files do not exist."""
    after = ""
    while rows := await tree.index.current_after(bucket.id, after, FILES_PER_BATCH):
        after = rows[-1][0]
        plain = [(key, seq, tree.parse(body)[0]) for key, seq, body in rows if is_plain_file(body)]
        with translate_driver_errors():
            stamps = await tree.files.find_all([path for _, _, path in plain])
        missing = [(key, seq) for (key, seq, _), stamp in zip(plain, stamps, strict=True) if stamp is None]
        if missing:
            report.vanished += sum(await tree.index.forget_vanished(bucket.id, missing))
