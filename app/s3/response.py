"""What an operation answers: status, headers and body."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.store.reading import Slices

Headers = list[tuple[bytes, bytes]]


@dataclass(slots=True)
class Response:
    """`headers` are lower-case names and values as they go on the wire, without date, server and request id.

    `body` is bytes, or slices of files, closed by whoever sends it; `length` is then its length in bytes (for an answer
    to HEAD, that of the body that is not sent).
    """

    status: int = 200
    headers: Headers = field(default_factory=list)
    body: bytes | Slices = b""
    length: int | None = None


XML = ((b"content-type", b"application/xml"),)
"""Headers of an answer that is a document."""
