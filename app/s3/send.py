"""Rendering answers to ASGI: the one place that writes a head, and that gives slices of files back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from app.s3.errors import S3Error
from app.s3.request import S3Request
from app.s3.response import Response
from app.s3.xml import error_document
from storage_drivers.base import FileSlice

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

CHUNK = 256 * 1024
"""Bytes read at a time where the connection cannot take a file (TLS)."""
ZERO_COPY = "http.response.zerocopysend"
NO_BODY = frozenset({204, 304})


async def send_response(request: S3Request, response: Response, scope: dict[str, Any], send: Send) -> int:
    """Send an answer; returns the bytes of its body. Slices are released however it ends."""
    headers = response.headers
    request_id = request.request_id.encode()
    headers += ((b"x-amz-request-id", request_id), (b"x-amz-id-2", request_id))
    body = response.body
    if isinstance(body, bytes):
        if response.status not in NO_BODY:
            length = len(body) if response.length is None else response.length
            headers.append((b"content-length", b"%d" % length))
        if request.method == "HEAD":
            body = b""
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return len(body)
    zero_copy = ZERO_COPY in scope.get("extensions", ())
    if response.length is not None:
        headers.append((b"content-length", b"%d" % response.length))
    sent = 0
    try:
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        async for piece in body:
            sent += await _send_slice(piece, zero_copy, send)
        await send({"type": "http.response.body", "body": b""})
    finally:
        await body.aclose()
    return sent


async def _send_slice(piece: FileSlice, zero_copy: bool, send: Send) -> int:
    offset, end = piece.offset, piece.offset + piece.count
    try:
        if zero_copy:
            await send({"type": ZERO_COPY, "file": piece.fd, "offset": offset, "count": piece.count, "more_body": True})
            return piece.count
        loop = asyncio.get_running_loop()
        while offset < end:
            data = await loop.run_in_executor(None, os.pread, piece.fd, min(CHUNK, end - offset), offset)
            if not data:
                raise OSError("a committed blob ended early")
            offset += len(data)
            await send({"type": "http.response.body", "body": data, "more_body": True})
        return piece.count
    finally:
        piece.release()


async def send_error(request: S3Request, error: S3Error, send: Send) -> int:
    """Send an error document (no body for HEAD and 304); returns the bytes of its body."""
    request_id = request.request_id.encode()
    headers = [(b"x-amz-request-id", request_id), (b"x-amz-id-2", request_id)]
    headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in error.headers.items()]
    body = b""
    if error.status not in NO_BODY:
        if request.method != "HEAD":
            resource = request.raw_path.decode("latin-1")
            body = error_document(error, resource, request.request_id)
        headers.append((b"content-type", b"application/xml"))
        headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
    return len(body)
