"""Finishes responses, and sends those of file slices. The one place that releases the slices."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

from sluice_s3.app.s3.errors import S3Error
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response, render_headers
from sluice_s3.app.s3.wire.xml import error_document
from sluice_s3.app.store.reading import BodyStream
from sluice_s3.storage_drivers.base import FileSlice

Send = Callable[[dict[str, Any]], Awaitable[None]]
"""ASGI's `send`. `http.response.start` may have `head`, rendered lines, and `length` in place of `headers`."""

CHUNK_BYTES = 256 * 1024
"""Bytes read at a time where the connection cannot send a file (TLS)."""
ZERO_COPY = "http.response.zerocopysend"
NO_BODY = frozenset({204, 304})


def finalize(request: S3Request, response: Response) -> None:
    """Render all headers with those of every response, and drop the body for HEAD."""
    request_id = request.request_id.encode()
    body = response.body
    length = response.length
    if isinstance(body, bytes):
        if request.method == "HEAD":
            response.body = b""
        if response.status in NO_BODY:
            length = None
        elif length is None:
            length = len(body)
    head = response.head
    if response.headers:
        head += render_headers(response.headers)
    if length is None:
        response.head = b"%bx-amz-request-id: %b\r\nx-amz-id-2: %b\r\n" % (head, request_id, request_id)
    else:
        ids = (head, request_id, request_id, length)
        response.head = b"%bx-amz-request-id: %b\r\nx-amz-id-2: %b\r\ncontent-length: %d\r\n" % ids
    response.length = length


def error_response(request: S3Request, error: S3Error) -> Response:
    """Return the response for an error: a document, except for HEAD and 304."""
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in error.headers.items()]
    body = b""
    if error.status not in NO_BODY:
        if request.method != "HEAD":
            resource = request.raw_path.decode("latin-1")
            body = error.document or error_document(error, resource, request.request_id)
        headers.append((b"content-type", b"application/xml"))
    region = _region_for_client(request, error)
    if region:
        headers.append((b"x-amz-bucket-region", region.encode("latin-1", "replace")))
    return Response(error.status, headers, body)


def _region_for_client(request: S3Request, error: S3Error) -> str:
    """Return the region to sign with, where AWS names it.

    For a wrong region, or a bucket that the caller may not see.
    """
    if request.bucket is None:
        return ""
    if error.status == 403 and request.key is None and request.method in ("GET", "HEAD"):
        return request.region
    return error.extra.get("Region", "")


async def send_stream(response: Response, body: BodyStream, send: Send, *, zero_copy: bool) -> int:
    """Send a response whose body is file slices; return the bytes of its body. Always releases the slices."""
    start = {"type": "http.response.start", "status": response.status}
    sent = 0
    try:
        await send({**start, "head": response.head, "length": response.length})
        async for piece in body:
            sent += await _send_slice(piece, zero_copy, send)
        await send({"type": "http.response.body", "body": b""})
    finally:
        await body.aclose()
    return sent


def _read(piece: FileSlice, count: int, offset: int) -> bytes:
    """Read in a thread, which may have been abandoned when it ends."""
    piece.hold()
    try:
        return os.pread(piece.fd, count, offset)
    finally:
        piece.let_go()


async def _send_slice(piece: FileSlice | bytes, zero_copy: bool, send: Send) -> int:
    if isinstance(piece, bytes):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        return len(piece)
    offset, end = piece.offset, piece.offset + piece.count
    try:
        if zero_copy:
            message = {"type": ZERO_COPY, "file": piece.fd, "offset": offset, "count": piece.count, "more_body": True}
            await send({**message, "slice": piece})
            return piece.count
        while offset < end:
            data = await piece.hop(_read, piece, min(CHUNK_BYTES, end - offset), offset)
            if not data:
                raise OSError("a committed blob ended early")
            offset += len(data)
            await send({"type": "http.response.body", "body": data, "more_body": True})
        return piece.count
    finally:
        piece.release()
