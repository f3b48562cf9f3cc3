"""What an operation answers: status, headers and body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.store.reading import Slices

NUL = 0
Headers = list[tuple[bytes, bytes]]


@dataclass(slots=True)
class Response:
    """`headers` are lower-case names and values as they go on the wire, without date, server and request id; `head` are
    such as they are rendered already, each with its line end, and come before them.

    `body` is bytes, or slices of files, closed by whoever sends it; `length` is then its length in bytes (for an answer
    to HEAD, that of the body that is not sent).
    """

    status: int = 200
    headers: Headers = field(default_factory=list)
    body: bytes | Slices = b""
    length: int | None = None
    head: bytes = b""


def render(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Header lines, each with its line end. Raises ValueError when a name or a value holds a line end or NUL."""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    # one look at all of them instead of one at each
    if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers) or NUL in lines:
        raise ValueError("a header holds a line end or NUL")
    return lines


XML = ((b"content-type", b"application/xml"),)
"""Headers of an answer that is a document."""
