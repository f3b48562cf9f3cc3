"""aws-chunked bodies as a client makes them, each piece of which can be changed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from zlib import crc32

from tests.integration.negative.site import GROUND, Site, path_of, put
from tests.support.raw_http import Answer, Request
from tests.support.signing import (
    SIGNED_CHUNKS,
    UNSIGNED_CHUNKS_TRAILER,
    Chunk,
    Signed,
    chunks_of,
    plain_chunks,
    trailer_signature,
)

PIECES = [b"a" * 70_000, b"b" * 8192, b"c" * 9000, b"tail"]
WHOLE = b"".join(PIECES)
Change = Callable[[list[Chunk]], list[Chunk]]


def crc(body: bytes) -> str:
    return base64.b64encode(crc32(body).to_bytes(4, "big")).decode()


def targets(site: Site) -> list[Request]:
    """Where a streamed body can go: a new key, an existing one, a part."""
    part = Request("PUT", path_of(GROUND, "keep/upload"), f"partNumber=2&uploadId={site.upload}")
    return [put(GROUND, "evil", b""), put(GROUND, "keep/small", b""), part]


def seed(site: Site, request: Request, marker: str, size: int | str | None, **fields: str) -> Signed:
    """The signed head of a streamed request."""
    extra = [("content-encoding", "aws-chunked")]
    if size is not None:
        extra.append(("x-amz-decoded-content-length", str(size)))
    extra += [(name.replace("_", "-"), value) for name, value in fields.items()]
    return site.signed(request.having(*extra), payload=marker)


def wire(chunks: list[Chunk], end: bytes = b"\r\n") -> bytes:
    return b"".join(chunk.wire() for chunk in chunks) + end


def with_signed_chunks(site: Site, request: Request, change: Change, size: int | str | None = len(WHOLE)) -> Request:
    signed = seed(site, request, SIGNED_CHUNKS, size)
    return replace(signed.request, body=wire(change(chunks_of(signed, PIECES))))


def refused(site: Site, change: Change, status: int, *codes: str, size: int | str | None = len(WHOLE)) -> None:
    for target in targets(site):
        site.refused(with_signed_chunks(site, target, change, size), status, *codes)


def wire_data(change: Change) -> bytes:
    return b"".join(chunk.data for chunk in change(plain_chunks(PIECES)))


def trailing_body(signed: Signed, *trailers: str, sign: str | None = None) -> bytes:
    """Signed chunks with trailing fields; `sign` replaces their signature, and an empty one leaves it out."""
    chunks = chunks_of(signed, PIECES)
    last = chunks[-1].extension.rpartition("=")[2]
    lines = "".join(f"{trailer}\n" for trailer in trailers)
    value = trailer_signature(signed, last, lines) if sign is None else sign
    end = "".join(f"{trailer}\r\n" for trailer in trailers)
    if value:
        end += f"x-amz-trailer-signature:{value}\r\n"
    return wire(chunks, end.encode() + b"\r\n")


GOOD = "x-amz-checksum-crc32:" + crc(WHOLE)


def unsigned(
    site: Site,
    target: Request,
    trailers: tuple[str, ...] = (GOOD,),
    *,
    announced: str | None = "x-amz-checksum-crc32",
    size: int | str | None = len(WHOLE),
    change: Change = lambda chunks: chunks,
    end: bytes = b"",
) -> Answer:
    """Ask with unsigned chunks and trailers."""
    fields = {} if announced is None else {"x_amz_trailer": announced}
    signed = seed(site, target, UNSIGNED_CHUNKS_TRAILER, size, **fields)
    lines = "".join(f"{trailer}\r\n" for trailer in trailers).encode() + b"\r\n"
    body = b"".join(
        f"{chunk.size}{chunk.extension}\r\n".encode() + tail(chunk) for chunk in change(plain_chunks(PIECES))
    )
    return site.ask(replace(signed.request, body=body + lines + end))


def tail(chunk: Chunk) -> bytes:
    return chunk.data + b"\r\n" if chunk.data else b""
