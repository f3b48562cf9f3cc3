"""The rows of multipart uploads: uploads, their parts, and the pieces of completed objects."""

from __future__ import annotations

from typing import NamedTuple

PIECES = "pieces:"
"""Prefix of a body that is made of the rows of `pieces` under the number that follows. Any other body is one blob's
locator."""


class Upload(NamedTuple):
    """A multipart upload.

    `id` is the number in the public `upload_id`.
    """

    id: int
    upload_id: str
    bucket_id: int
    key: str
    initiated: int
    headers: str
    storage_class: str
    checksum_algorithm: str
    checksum_type: str
    owner_id: str
    completed_seq: int
    """The sequence of the version that Complete made; else `OPEN` or `ABORTED` in the schema."""
    completed_version_id: str = ""


class Extent(NamedTuple):
    """A run of `size` bytes at `offset` of the blob at `locator`."""

    locator: str
    offset: int
    size: int


class Part(NamedTuple):
    """A part of an open upload."""

    number: int
    size: int
    etag: str
    modified: int
    checksum_algorithm: str
    checksum: str
    extents: tuple[Extent, ...]
    """Empty for a part of 0 bytes."""


class Piece(NamedTuple):
    """A run of bytes of a completed multipart object.

    It has `size` bytes at `start` of the object.
    """

    start: int
    size: int
    part_number: int
    locator: str
    offset: int
    """Where the run starts in its blob, in bytes."""


class ObjectPart(NamedTuple):
    """A part of a completed multipart object, as GetObjectAttributes and `partNumber` show it."""

    number: int
    start: int
    size: int
    checksum: str


def extents_of(body: str, size: int) -> tuple[Extent, ...]:
    """Return the extents of a body that is one blob."""
    return (Extent(body, 0, size),) if size else ()
