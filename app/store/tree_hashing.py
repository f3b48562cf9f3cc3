"""The true ETags and checksums of plain files that others made: put in when somebody has read them all."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable, Sequence

from awscrt.checksums import crc64nvme

from app.errors import SourceGone, StoreUnavailable
from app.index.rows import Unhashed
from app.store.calls import driver_calls
from app.store.tree import Tree
from app.store.tree_reading import SMALL
from storage_drivers.base import Buffer
from storage_drivers.tree import FileChanged, FileGone, Unreadable

ALGORITHM = "CRC64NVME"
AT_ONCE = 128
"""Files whose hashes are committed together."""


class Hashes:
    """MD5 and CRC64NVME of bytes that are given in order."""

    def __init__(self) -> None:
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._crc = 0

    def take(self, piece: Buffer) -> None:
        """The next bytes. In a thread."""
        self._md5.update(piece)
        self._crc = crc64nvme(piece, self._crc)

    @property
    def etag(self) -> str:
        """The MD5 as hexadecimal digits."""
        return self._md5.hexdigest()

    @property
    def checksum(self) -> str:
        """The CRC64NVME as S3 writes it."""
        return base64.b64encode(self._crc.to_bytes(8, "big")).decode()


UNREADABLE = Hashes()
"""In place of the hashes of a file that cannot be read."""


async def hash_files(
    tree: Tree,
    rows: Sequence[Unhashed],
    progress: Callable[[Unhashed], None] = lambda _: None,
    unreadable: Callable[[Unhashed], None] = lambda _: None,
) -> int:
    """Hash the files of some rows and give the rows what was found; of how many. Raises StoreUnavailable.

    A file that was changed meanwhile is looked at again, and waits with its new row. One that cannot be read goes on
    waiting, and stops no other.
    """
    hashed = 0
    for first in range(0, len(rows), AT_ONCE):
        some = rows[first : first + AT_ONCE]
        gone = [row.seq for row in some if not row.bucket_id]
        if gone:
            await tree.index.forget_unhashed(gone)
        there = [row for row in some if row.bucket_id]
        done = await _hash(tree, there)
        commits = []
        for row in there:
            hashes = done.get(row.seq)
            if hashes is UNREADABLE:
                unreadable(row)
            elif hashes is None:
                await _look_again(tree, row)
            else:
                commits.append(tree.index.set_hashes(row.seq, row.body, hashes.etag, ALGORITHM, hashes.checksum))
                progress(row)
        hashed += sum(await asyncio.gather(*commits))
    return hashed


async def _hash(tree: Tree, rows: Sequence[Unhashed]) -> dict[int, Hashes]:
    """Hashes (or UNREADABLE) by sequence, not of files that are not the row's any more. Small files share hops."""
    small = [row for row in rows if row.size <= SMALL]
    with driver_calls():
        done = await tree.in_thread(_hash_here, tree, small) if small else {}
    for row in rows:
        if row.size <= SMALL:
            continue
        hashes = Hashes()
        try:
            await tree.feed(row.body, 0, row.size, hashes.take)
        except SourceGone:
            continue
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, Unreadable):
                raise
            hashes = UNREADABLE
        done[row.seq] = hashes
    return done


def _hash_here(tree: Tree, rows: Sequence[Unhashed]) -> dict[int, Hashes]:
    done = {}
    for row in rows:
        try:
            body = tree.files.read_here(tree.locator(row.body), 0, row.size)
        except (FileChanged, FileGone):
            continue
        except Unreadable:
            done[row.seq] = UNREADABLE
            continue
        done[row.seq] = Hashes()
        done[row.seq].take(body)
    return done


async def _look_again(tree: Tree, row: Unhashed) -> None:
    bucket = await tree.index.bucket(tree.parse(row.body)[0].partition("/")[0])
    if bucket is not None and bucket.id == row.bucket_id:
        await tree.find(bucket, row.key)
