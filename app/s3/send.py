"""Rendering answers to ASGI: the one place that writes a head, and that gives slices of files back."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from app.s3.errors import S3Error
from app.s3.request import S3Request
from app.s3.response import Response, render
from app.s3.xml import error_document
from storage_drivers.base import FileSlice

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

CHUNK = 256 * 1024
"""Bytes read at a time where the connection cannot take a file (TLS)."""
ZERO_COPY = "http.response.zerocopysend"
RENDERED = "sluice.response.rendered"
"""Of our server: `http.response.start` may have `head`, rendered lines, and `length` instead of `headers`; and `body`,
which is then all of it."""
NO_BODY = frozenset({204, 304})


def complete(request: S3Request, response: Response) -> None:
    """Render all headers, with those that every answer has, and leave out the body that HEAD does not send."""
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
        head += render(response.headers)
    if length is None:
        response.head = b"%bx-amz-request-id: %b\r\nx-amz-id-2: %b\r\n" % (head, request_id, request_id)
    else:
        ids = (head, request_id, request_id, length)
        response.head = b"%bx-amz-request-id: %b\r\nx-amz-id-2: %b\r\ncontent-length: %d\r\n" % ids
    response.length = length


def error_response(request: S3Request, error: S3Error) -> Response:
    """The answer that tells an error: a document, but for HEAD and 304."""
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in error.headers.items()]
    body = b""
    if error.status not in NO_BODY:
        if request.method != "HEAD":
            resource = request.raw_path.decode("latin-1")
            body = error.document or error_document(error, resource, request.request_id)
        headers.append((b"content-type", b"application/xml"))
    return Response(error.status, headers, body)


async def send_response(response: Response, scope: dict[str, Any], send: Send) -> int:
    """Send a complete answer; returns the bytes of its body. Slices are released however it ends."""
    body = response.body
    start: dict[str, Any] = {"type": "http.response.start", "status": response.status}
    if RENDERED in scope["extensions"]:
        start |= {"head": response.head, "length": response.length}
    else:
        start["headers"] = [tuple(line.split(b": ", 1)) for line in response.head.split(b"\r\n")[:-1]]
    if isinstance(body, bytes):
        if "head" in start:
            start["body"] = body
            await send(start)
        else:
            await send(start)
            await send({"type": "http.response.body", "body": body})
        return len(body)
    zero_copy = ZERO_COPY in scope["extensions"]
    sent = 0
    try:
        await send(start)
        async for piece in body:
            sent += await _send_slice(piece, zero_copy, send)
        await send({"type": "http.response.body", "body": b""})
    finally:
        await body.aclose()
    return sent


def _read(piece: FileSlice, count: int, offset: int) -> bytes:
    """In a thread, which may have been given up when it ends."""
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
            data = await piece.hop(_read, piece, min(CHUNK, end - offset), offset)
            if not data:
                raise OSError("a committed blob ended early")
            offset += len(data)
            await send({"type": "http.response.body", "body": data, "more_body": True})
        return piece.count
    finally:
        piece.release()
