"""Checksums of objects and parts, and their headers in requests.

Source: "Checking object integrity in Amazon S3", Amazon S3 User Guide.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import xxhash
from isal import isal_zlib

from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.wire.request import S3Request

FULL_OBJECT = "FULL_OBJECT"
COMPOSITE = "COMPOSITE"

Data = bytes | bytearray | memoryview


class Hasher(Protocol):
    """A checksum being computed."""

    def update(self, data: Data, /) -> None:
        """Add data."""

    def digest_base64(self) -> str:
        """Return the checksum so far, in the form of headers."""


class _Crc:
    __slots__ = ("_function", "_size", "_value")

    def __init__(self, function: Callable[[Data, int], int], size: int) -> None:
        self._function = function
        self._size = size
        self._value = 0

    def update(self, data: Data, /) -> None:
        self._value = self._function(data, self._value)

    def digest_base64(self) -> str:
        return b64encode(self._value.to_bytes(self._size, "big")).decode("ascii")


class _Digest(Protocol):
    def update(self, data: Data, /) -> None: ...

    def digest(self) -> bytes: ...


class _Hash:
    """xxHash returns digests with the highest byte first, as S3 writes them."""

    __slots__ = ("_digest", "update")

    def __init__(self, digest: _Digest) -> None:
        self._digest = digest
        self.update = digest.update

    def digest_base64(self) -> str:
        return b64encode(self._digest.digest()).decode("ascii")


class SharedMd5:
    """The checksum of data that another object hashes; `update` does nothing."""

    def __init__(self, digest: _Digest) -> None:
        self._digest = digest

    def update(self, data: Data, /) -> None:
        """Do nothing: the data is hashed already."""

    def digest_base64(self) -> str:
        """See `Hasher`."""
        return b64encode(self._digest.digest()).decode("ascii")


@cache
def _awscrt() -> Any:
    # loads a library of several MB, which a process without such checksums need not have
    import awscrt.checksums

    return awscrt.checksums


class Algorithm(NamedTuple):
    """A checksum algorithm. `size` is the bytes of a digest."""

    name: str
    header: str
    size: int
    types: tuple[str, ...]
    """The checksum types of multipart objects, the default first."""
    new: Callable[[], Hasher]


def _only_composite(name: str, size: int, new: Callable[[], _Digest]) -> Algorithm:
    # only CRCs of parts can be combined to that of the whole
    return Algorithm(name, "x-amz-checksum-" + name.lower(), size, (COMPOSITE,), lambda: _Hash(new()))


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("CRC32", "x-amz-checksum-crc32", 4, (COMPOSITE, FULL_OBJECT), lambda: _Crc(isal_zlib.crc32, 4)),
        Algorithm("CRC32C", "x-amz-checksum-crc32c", 4, (COMPOSITE, FULL_OBJECT), lambda: _Crc(_awscrt().crc32c, 4)),
        Algorithm("CRC64NVME", "x-amz-checksum-crc64nvme", 8, (FULL_OBJECT,), lambda: _Crc(_awscrt().crc64nvme, 8)),
        _only_composite("MD5", 16, lambda: hashlib.md5(usedforsecurity=False)),
        _only_composite("SHA1", 20, lambda: hashlib.sha1(usedforsecurity=False)),
        _only_composite("SHA256", 32, hashlib.sha256),
        _only_composite("SHA512", 64, hashlib.sha512),
        _only_composite("XXHASH128", 16, xxhash.xxh3_128),
        _only_composite("XXHASH3", 8, xxhash.xxh3_64),
        _only_composite("XXHASH64", 8, xxhash.xxh64),
    )
}

BY_HEADER = {algorithm.header: algorithm for algorithm in ALGORITHMS.values()}

# x-amz-checksum-… headers without a checksum
OPTIONS = frozenset({"x-amz-checksum-algorithm", "x-amz-checksum-type", "x-amz-checksum-mode"})


class ExpectedChecksum(NamedTuple):
    """The checksum that a request announces; all empty without one."""

    algorithm: str = ""
    value: str = ""
    """Base64, followed by `-N` only in Complete. Empty without a value, or when it is in the trailer."""
    trailer: bool = False
    """The value is in a trailing header."""
    type: str = ""
    """`FULL_OBJECT` or `COMPOSITE` when the request names one."""

    def final(self, trailers: dict[str, str]) -> str:
        """Return the announced value, from the trailers if it is there; empty without one.

        Raises MalformedTrailerError when it is missing, InvalidRequest when it is malformed.
        """
        if not self.trailer:
            return self.value
        header = ALGORITHMS[self.algorithm].header
        if header not in trailers:
            raise errors.MalformedTrailerError
        if not is_valid_value(self.algorithm, trailers[header]):
            raise errors.InvalidRequest(f"Value for {header} trailing header is invalid.")
        return trailers[header]


NO_CHECKSUM = ExpectedChecksum()
COMMON_HEADERS = frozenset({"x-amz-date", "x-amz-content-sha256", "x-amz-acl", "x-amz-storage-class"})
"""Headers without a checksum: most requests have no others."""


def is_valid_value(algorithm: str, value: str, *, parts: bool = False) -> bool:
    """Return whether `value` is the base64 of a digest. With `parts` also of a composite one with `-N`."""
    if parts:
        head, dash, count = value.rpartition("-")
        if dash:
            if not (count.isascii() and count.isdigit() and len(count) <= 5 and int(count)):
                return False
            value = head
    try:
        digest = a2b_base64(value, strict_mode=True)
    except (Base64Error, ValueError):
        return False
    # one digest has one text: spare bits must be zero
    return len(digest) == ALGORITHMS[algorithm].size and b64encode(digest).decode("ascii") == value


def expected_checksum(request: S3Request, *, complete: bool = False) -> ExpectedChecksum:
    """Return the checksum that a request with data (or, with `complete`, a Complete) announces.

    Raises InvalidRequest for more than one checksum, an unknown algorithm, a malformed value, or headers that
    contradict each other.
    """
    if COMMON_HEADERS.issuperset(request.amazon):
        return NO_CHECKSUM
    headers = request.headers
    values = [name for name in request.amazon if name[:15] == "x-amz-checksum-" and name not in OPTIONS]
    trailer = headers.get("x-amz-trailer")
    sdk = headers.get("x-amz-sdk-checksum-algorithm")
    kind = headers.get("x-amz-checksum-type")
    if not values and trailer is None and sdk is None and kind is None:
        return NO_CHECKSUM
    if kind is not None and kind not in (FULL_OBJECT, COMPOSITE):
        raise errors.InvalidRequest("Value for x-amz-checksum-type header is invalid.")
    trailing = _trailing(trailer)
    if len(values) + (trailing is not None) > 1:
        raise errors.InvalidRequest(
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed."
        )
    found = trailing
    value = ""
    if values:
        found = _of_header(values[0])
        value = headers[values[0]]
        if not is_valid_value(found.name, value, parts=complete):
            raise errors.InvalidRequest(f"Value for {found.header} header is invalid.")
    if sdk is not None:
        _check_sdk_algorithm(sdk, found)
    return ExpectedChecksum(found.name if found else "", value, trailing is not None, kind or "")


def requested_algorithm(request: S3Request) -> tuple[str, str]:
    """Return the algorithm and type that CreateMultipartUpload or a copy requests; empty without.

    Raises InvalidRequest for unknown ones and for invalid pairs.
    """
    text = request.headers.get("x-amz-checksum-algorithm")
    kind = request.headers.get("x-amz-checksum-type")
    if kind is not None and kind.upper() not in (FULL_OBJECT, COMPOSITE):
        raise errors.InvalidRequest("Value for x-amz-checksum-type header is invalid.")
    if text is None:
        if kind is not None:
            raise errors.InvalidRequest(
                "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header."
            )
        return "", ""
    algorithm = ALGORITHMS.get(text.upper())
    if algorithm is None:
        raise errors.InvalidRequest(
            "Checksum algorithm provided is unsupported. Please try again with any of the valid types: "
            f"[{', '.join(ALGORITHMS)}]"
        )
    if kind is None:
        return algorithm.name, algorithm.types[0]
    check_type(algorithm.name, kind.upper())
    return algorithm.name, kind.upper()


def check_type(algorithm: str, kind: str) -> None:
    """Refuse a checksum type that the algorithm does not support. Raises InvalidRequest."""
    if kind not in ALGORITHMS[algorithm].types:
        raise errors.InvalidRequest(
            f"The {kind} checksum type cannot be used with the {algorithm.lower()} checksum algorithm."
        )


def mismatch(algorithm: str) -> errors.BadDigest:
    """Return the error for data with another checksum than announced."""
    return errors.BadDigest(f"The {algorithm} you specified did not match the calculated checksum.")


def content_md5(request: S3Request) -> bytes | None:
    """Return the 16 bytes of Content-MD5; None without one. Raises InvalidDigest."""
    text = request.headers.get("content-md5")
    if text is None:
        return None
    try:
        digest = a2b_base64(text.strip(), strict_mode=True)
    except (Base64Error, ValueError):
        raise _invalid_digest(text) from None
    if len(digest) != 16:
        raise _invalid_digest(text)
    return digest


def _invalid_digest(text: str) -> errors.InvalidDigest:
    error = errors.InvalidDigest()
    error.extra["Content-MD5"] = text[:64]
    return error


def composite(algorithm: str, checksums: Sequence[str]) -> str:
    """Return the checksum of the parts' checksums (base64 each), followed by `-N`."""
    hasher = ALGORITHMS[algorithm].new()
    for checksum in checksums:
        hasher.update(b64decode(checksum))
    return f"{hasher.digest_base64()}-{len(checksums)}"


def combine_full_object(algorithm: str, parts: Sequence[tuple[str, int]]) -> str:
    """Return the CRC of a whole object. `parts` are checksums (base64) and sizes (bytes), in order."""
    crt = _awscrt()
    combine = {"CRC32": crt.combine_crc32, "CRC32C": crt.combine_crc32c, "CRC64NVME": crt.combine_crc64nvme}[algorithm]
    value = 0
    for checksum, size in parts:
        value = combine(value, int.from_bytes(b64decode(checksum), "big"), size)
    return b64encode(value.to_bytes(ALGORITHMS[algorithm].size, "big")).decode("ascii")


def _trailing(trailer: str | None) -> Algorithm | None:
    if trailer is None:
        return None
    name = trailer.strip().lower()
    if name not in BY_HEADER:
        raise errors.InvalidRequest("The value specified in the x-amz-trailer header is not supported")
    return BY_HEADER[name]


def _of_header(name: str) -> Algorithm:
    if name not in BY_HEADER:
        raise errors.InvalidRequest("The algorithm type you specified in x-amz-checksum- header is invalid.")
    return BY_HEADER[name]


def _check_sdk_algorithm(text: str, found: Algorithm | None) -> None:
    name = text.upper()
    if name not in ALGORITHMS:
        raise errors.InvalidRequest("Value for x-amz-sdk-checksum-algorithm header is invalid.")
    if found is None:
        raise errors.InvalidRequest(
            "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers"
            " were found."
        )
    if found.name != name:
        raise errors.InvalidRequest("Value for x-amz-sdk-checksum-algorithm header is invalid.")
