"""ETags: what they are made of, which is a choice of each store.

An MD5 is written as 32 hexadecimal digits. Otherwise the ETag of a body is its CRC64NVME and its size in bytes, both
hexadecimal, followed by `-crc64nvme`: clients take an ETag with a hyphen for no MD5, and one whose last word is not a
number for none of a multipart upload. The size is there because bodies that end in their own CRC all have the same one.
An ETag is kept with its object, so a store may contain both kinds.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache

from sluice_s3.storage_drivers.base import Buffer

MD5, CRC64NVME = "md5", "crc64nvme"
"""Kinds of ETags, as in the setting `etag`."""
_MD5 = re.compile("[0-9a-f]{32}")
_CRC64 = re.compile(f"[0-9a-f]{{26,32}}-{CRC64NVME}")
_SIZE_DIGITS = 10
"""At least: an ETag of 32 characters is an MD5 to earlier versions of the scrubber."""
_OPAQUE_DIGEST_BYTES = 12
"""As many as an MD5 has would look like the ETag of AWS, which clients may compute."""


def kind_of(etag: str) -> str:
    """Return the kind of an ETag by its form; empty when it is no hash of a whole body."""
    if _MD5.fullmatch(etag):
        return MD5
    return CRC64NVME if _CRC64.fullmatch(etag) else ""


def crc64_etag(checksum: str, size: int) -> str:
    """Return the ETag of `size` bytes with this CRC64NVME (base64, as in headers)."""
    return f"{base64.b64decode(checksum).hex()}{size:0{_SIZE_DIGITS}x}-{CRC64NVME}"


def multipart_etag(etags: Sequence[str]) -> str:
    """Return the ETag of an object of parts with these ETags: a hash of them, followed by `-N`.

    It is AWS's, the MD5 of the parts' MD5s, where each part has one; else a shorter hash.
    """
    if all(kind_of(etag) == MD5 for etag in etags):
        digits = hashlib.md5(bytes.fromhex("".join(etags)), usedforsecurity=False).hexdigest()
    else:
        digits = hashlib.blake2b(" ".join(etags).encode(), digest_size=_OPAQUE_DIGEST_BYTES).hexdigest()
    return f"{digits}-{len(etags)}"


def is_multipart(etag: str) -> bool:
    """Return whether an ETag ends in a number of parts."""
    return etag.rpartition("-")[2].isdigit() and "-" in etag


@cache
def _crc64nvme() -> Callable[[Buffer, int], int]:
    # loads a library of several MB, which a process without such ETags need not have
    from awscrt.checksums import crc64nvme

    function: Callable[[Buffer, int], int] = crc64nvme
    return function


class Md5Hash:
    """Hashes bytes to an ETag that is their MD5."""

    def __init__(self) -> None:
        self._md5 = hashlib.md5(usedforsecurity=False)
        self.update = self._md5.update

    @property
    def etag(self) -> str:
        """The ETag of the bytes so far."""
        return self._md5.hexdigest()


class Crc64Hash:
    """Hashes bytes to an ETag that is their CRC64NVME."""

    def __init__(self) -> None:
        self._function = _crc64nvme()
        self._crc = self._size = 0

    def update(self, piece: Buffer) -> None:
        """Hash the next bytes."""
        self._crc = self._function(piece, self._crc)
        self._size += len(piece)

    @property
    def checksum(self) -> str:
        """The CRC64NVME as S3 writes it."""
        return base64.b64encode(self._crc.to_bytes(8, "big")).decode()

    @property
    def etag(self) -> str:
        """The ETag of the bytes so far."""
        return crc64_etag(self.checksum, self._size)


def hash_to_check(etag: str) -> Md5Hash | Crc64Hash | None:
    """Return the hash by which bytes can be compared with their ETag; None for an ETag that is no hash of them."""
    kind = kind_of(etag)
    return (Md5Hash() if kind == MD5 else Crc64Hash()) if kind else None
