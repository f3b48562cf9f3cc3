"""ETags and checksums of plain files that other programs wrote, stored once computed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from sluice_s3.app.errors import SourceGone, StoreUnavailable
from sluice_s3.app.index.plain_files.rows import PendingHash
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.etags import MD5, Crc64Hash, Md5Hash
from sluice_s3.app.store.plain_files.reads import SMALL_FILE_BYTES
from sluice_s3.app.store.plain_files.writes import PlainFiles
from sluice_s3.storage_drivers.base import Buffer
from sluice_s3.storage_drivers.tree import FileChanged, FileGone, Unreadable

ALGORITHM = "CRC64NVME"
FILES_PER_BATCH = 128
"""Files whose hashes are committed together."""


class Hashes:
    """CRC64NVME and ETag of bytes in order."""

    def __init__(self, etag_kind: str) -> None:
        self._crc = Crc64Hash()
        self._md5 = Md5Hash() if etag_kind == MD5 else None

    def update(self, piece: Buffer) -> None:
        """Hash the next bytes. Runs in a thread."""
        self._crc.update(piece)
        if self._md5 is not None:
            self._md5.update(piece)

    @property
    def etag(self) -> str:
        """The ETag of the kind asked for."""
        return self._crc.etag if self._md5 is None else self._md5.etag

    @property
    def checksum(self) -> str:
        """The CRC64NVME as S3 writes it."""
        return self._crc.checksum


async def hash_files(
    tree: PlainFiles,
    rows: Sequence[PendingHash],
    progress: Callable[[PendingHash], None] = lambda _: None,
    unreadable: Callable[[PendingHash], None] = lambda _: None,
) -> int:
    """Hash the files of some rows, store the hashes, and return how many.

    A file that changed meanwhile waits with its new row. A file that cannot be read stays in the queue and stops no
    other. Raises StoreUnavailable.
    """
    hashed = 0
    for first in range(0, len(rows), FILES_PER_BATCH):
        batch = rows[first : first + FILES_PER_BATCH]
        deleted = [row.seq for row in batch if not row.bucket_id]
        if deleted:
            await tree.index.forget_unhashed(deleted)
        present = [row for row in batch if row.bucket_id]
        hashes_by_seq = await _hash(tree, present)
        commits = []
        for row in present:
            if row.seq not in hashes_by_seq:
                await _refresh_row(tree, row)
            elif (hashes := hashes_by_seq[row.seq]) is None:
                unreadable(row)
            else:
                commits.append(tree.index.set_hashes(row.seq, row.body, hashes.etag, ALGORITHM, hashes.checksum))
                progress(row)
        hashed += sum(await asyncio.gather(*commits))
    return hashed


async def _hash(tree: PlainFiles, rows: Sequence[PendingHash]) -> dict[int, Hashes | None]:
    """Return hashes by sequence, None for unreadable files, except of files that changed since.

    Small files share one call to a thread.
    """
    small = [row for row in rows if row.size <= SMALL_FILE_BYTES]
    with translate_driver_errors():
        hashes_by_seq = await tree.in_thread(_hash_small_files, tree, small) if small else {}
    for row in rows:
        if row.size <= SMALL_FILE_BYTES:
            continue
        hashes = Hashes(tree.etag_kind)
        try:
            await tree.feed(row.body, 0, row.size, hashes.update)
        except SourceGone:
            continue
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, Unreadable):
                raise
            hashes_by_seq[row.seq] = None
        else:
            hashes_by_seq[row.seq] = hashes
    return hashes_by_seq


def _hash_small_files(tree: PlainFiles, rows: Sequence[PendingHash]) -> dict[int, Hashes | None]:
    hashes_by_seq: dict[int, Hashes | None] = {}
    for row in rows:
        try:
            body = tree.files.read_blocking(tree.locator(row.body), 0, row.size)
        except (FileChanged, FileGone):
            continue
        except Unreadable:
            hashes_by_seq[row.seq] = None
            continue
        hashes_by_seq[row.seq] = hashes = Hashes(tree.etag_kind)
        hashes.update(body)
    return hashes_by_seq


async def _refresh_row(tree: PlainFiles, row: PendingHash) -> None:
    bucket = await tree.index.bucket(tree.parse(row.body)[0].partition("/")[0])
    if bucket is not None and bucket.id == row.bucket_id:
        await tree.find(bucket, row.key)
