"""Answers of the server without the application: S3 errors, which always close the connection."""

from __future__ import annotations

import secrets

from sluice_s3.app.s3.errors import S3Error
from sluice_s3.app.s3.wire.xml import error_document
from sluice_s3.app.server.http.response_head import status_line


def render_error(error: S3Error, default_head: bytes, resource: str, request_id: str) -> tuple[str, bytes, int]:
    """Return the bytes of an answer that closes the connection, behind its request id and before its body's size.

    The request id is a new one if none is given.
    """
    request_id = request_id or secrets.token_hex(8).upper()
    body = error_document(error, resource, request_id)
    head = (
        f"content-type: application/xml\r\ncontent-length: {len(body)}\r\nx-amz-request-id: {request_id}\r\n"
        f"x-amz-id-2: {request_id}\r\nconnection: close\r\n"
    )
    head += "".join(f"{name}: {value}\r\n" for name, value in error.headers.items()) + "\r\n"
    return request_id, b"".join((status_line(error.status), default_head, head.encode(), body)), len(body)
