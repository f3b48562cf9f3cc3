"""The true ETags and checksums of plain files that others made: put in when somebody has read them all."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable, Sequence

from awscrt.checksums import crc64nvme

from app.errors import SourceGone
from app.index.rows import Unhashed
from app.store.tree import Tree
from storage_drivers.base import Buffer

ALGORITHM = "CRC64NVME"
AT_ONCE = 32
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


async def hash_files(
    tree: Tree, rows: Sequence[Unhashed], progress: Callable[[Unhashed], None] = lambda _: None
) -> int:
    """Hash the files of some rows and give the rows what was found; of how many. Raises StoreUnavailable.

    A file that was changed meanwhile is looked at again, and waits with its new row.
    """
    hashed = 0
    for first in range(0, len(rows), AT_ONCE):
        some = rows[first : first + AT_ONCE]
        done = [(row, await _hashed(tree, row, progress)) for row in some]
        commits = [
            tree.index.set_hashes(row.seq, row.body, hashes.etag, ALGORITHM, hashes.checksum)
            for row, hashes in done
            if hashes is not None
        ]
        hashed += sum(await asyncio.gather(*commits))
    return hashed


async def _hashed(tree: Tree, row: Unhashed, progress: Callable[[Unhashed], None]) -> Hashes | None:
    if not row.bucket_id:
        await tree.index.forget_unhashed([row.seq])
        return None
    hashes = Hashes()
    try:
        await tree.feed(row.body, 0, row.size, hashes.take)
    except SourceGone:
        bucket = await tree.index.bucket(tree.parse(row.body)[0].partition("/")[0])
        if bucket is not None and bucket.id == row.bucket_id:
            await tree.find(bucket, row.key)
        return None
    progress(row)
    return hashes
