"""PutObject and DeleteObject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.index.rows import Committed, NewVersion
from app.s3 import conditions, metadata
from app.s3.body import Body
from app.s3.dispatch import operation
from app.s3.operations.object_read import version_id
from app.s3.request import S3Request
from app.s3.response import Headers, Response
from app.store import objects

if TYPE_CHECKING:
    from app.s3.gateway import Gateway


@operation("PUT", "key", name="PutObject", action="s3:PutObject", streams=True)
async def put_object(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html"""
    assert request.key is not None
    bucket = request.bucket_row
    wanted = conditions.write_conditions(request)
    kept = metadata.encode(metadata.kept_headers(request))
    storage_class = metadata.storage_class(request)
    body = Body(request, largest=gateway.settings.max_put)

    def describe(locator: str) -> NewVersion:
        return NewVersion(
            size=body.size or 0,
            etag=body.etag,
            headers=kept,
            storage_class=storage_class,
            checksum_algorithm=body.algorithm,
            checksum_type="FULL_OBJECT",
            checksum=body.checksum,
            body=locator,
            parts=0,
            owner_id=bucket.owner_id,
        )

    committed = await objects.put(gateway.store, bucket.id, request.key, body, describe, wanted, request.timings)
    headers: Headers = [
        (b"etag", b'"' + body.etag.encode() + b'"'),
        (b"x-amz-checksum-" + body.algorithm.lower().encode(), body.checksum.encode()),
        (b"x-amz-checksum-type", b"FULL_OBJECT"),
    ]
    if storage_class != "STANDARD":
        headers.append((b"x-amz-storage-class", storage_class.encode()))
    return Response(200, headers + version_header(committed))


def version_header(committed: Committed) -> Headers:
    """`x-amz-version-id`, where the bucket keeps versions."""
    if committed.version_id == "null":
        return []
    return [(b"x-amz-version-id", committed.version_id.encode())]


@operation("DELETE", "key", name="DeleteObject", action="s3:DeleteObject")
async def delete_object(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObject.html"""
    assert request.key is not None
    asked = version_id(request)
    wanted = conditions.write_conditions(request)
    await objects.delete(gateway.store, request.bucket_row.id, request.key, asked, wanted, request.timings)
    return Response(204, [(b"x-amz-version-id", asked.encode())] if asked == "null" else [])
