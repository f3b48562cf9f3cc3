"""What an operation answers: status, headers and a body in one of four forms."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from storage_drivers.base import FileSlice

Headers = list[tuple[bytes, bytes]]


@dataclass(slots=True)
class Response:
    """`headers` are lower-case names and values as they go on the wire, without date, server and request id.

    `body` is bytes, or an iterator of bytes and `FileSlice`s (each released by whoever takes it); `length` is then its
    length in bytes.
    """

    status: int = 200
    headers: Headers = field(default_factory=list)
    body: bytes | AsyncIterator[bytes | FileSlice] = b""
    length: int | None = None


XML = ((b"content-type", b"application/xml"),)
"""Headers of an answer that is a document."""
