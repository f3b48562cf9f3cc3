"""ETag and checksum of bytes that are copied."""

from __future__ import annotations

import hashlib

from sluice_s3.app.s3.wire.checksums import ALGORITHMS
from sluice_s3.app.store.etags import CRC64NVME, MD5, crc64_etag
from sluice_s3.storage_drivers.base import Buffer


class ContentHashes:
    """Hashes bytes to an ETag and a checksum, each kind of hash once.

    `etag_kind` is that of `app.store.etags`, `algorithm` the checksum's; either may be empty, for none.
    """

    def __init__(self, etag_kind: str, algorithm: str) -> None:
        self._size = 0
        self._md5 = hashlib.md5(usedforsecurity=False) if etag_kind == MD5 else None
        self._by_algorithm = {
            name: ALGORITHMS[name].new() for name in (algorithm, "CRC64NVME" if etag_kind == CRC64NVME else "") if name
        }
        self._algorithm = algorithm

    def update(self, piece: Buffer) -> None:
        """Hash the next bytes."""
        self._size += len(piece)
        if self._md5 is not None:
            self._md5.update(piece)
        for hasher in self._by_algorithm.values():
            hasher.update(piece)

    @property
    def etag(self) -> str:
        """The ETag of the bytes so far."""
        if self._md5 is not None:
            return self._md5.hexdigest()
        return crc64_etag(self._by_algorithm["CRC64NVME"].digest_base64(), self._size)

    @property
    def checksum(self) -> str:
        """The checksum of the bytes so far, in the form of headers."""
        return self._by_algorithm[self._algorithm].digest_base64()
