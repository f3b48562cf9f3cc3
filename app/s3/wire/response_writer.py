"""Finishes responses: the headers of all, and the documents of errors."""

from __future__ import annotations

from sluice_s3.app.s3.errors import S3Error
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response, render_headers
from sluice_s3.app.s3.wire.xml import error_document

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
