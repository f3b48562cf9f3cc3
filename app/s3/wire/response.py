"""The response of an operation: status, headers and body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sluice_s3.app.store.reading import BodyStream

NUL_BYTE = 0
Headers = list[tuple[bytes, bytes]]


@dataclass(slots=True)
class Response:
    """A response. `headers` are lower-case names and values, without date, server and request id.

    `head` is rendered header lines, each with its line end, sent before `headers`. `body` is bytes, or slices of files,
    which the sender closes; `length` is then its length in bytes (for HEAD, that of the body that is not sent).
    """

    status: int = 200
    headers: Headers = field(default_factory=list)
    body: bytes | BodyStream = b""
    length: int | None = None
    head: bytes = b""


def render_headers(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Render header lines, each with its line end. Raises ValueError for a line end or NUL in a name or a value."""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    # one check of all lines instead of one each
    if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers) or NUL_BYTE in lines:
        raise ValueError("a header holds a line end or NUL")
    return lines


XML = ((b"content-type", b"application/xml"),)
"""Headers of a response with a document."""
