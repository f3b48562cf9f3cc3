"""Objects that the gateway writes by itself, such as logs: by the way of any PutObject, as the bucket's owner.

So quota, versions, default retention and whatever else a bucket does to what is put hold for them, too.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from app.access.acl import Grants
from app.index.rows import Bucket, Committed
from app.index.telling import telling
from app.s3 import encryption, target
from app.s3.acls import Written
from app.s3.events.causes import teller_of
from app.s3.operations.object_write import Put, write
from app.s3.request import S3Request

if TYPE_CHECKING:
    from app.s3.gateway import Gateway


async def put(
    gateway: Gateway,
    bucket: Bucket,
    key: str,
    data: bytes,
    content_type: str,
    grants: Grants | None = None,
    encryption_method: str = "",
) -> Committed:
    """Write an object. Who may was decided before. Raises what PutObject does.

    `grants` is its ACL, None where its owner has all; `encryption_method` is empty for what the bucket has by default.
    """
    target.check_key(key)
    md5 = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest())
    request = S3Request()
    request.method, request.operation = "PUT", "PutObject"
    request.raw_path, request.raw_query, request.query = b"/", b"", {}
    names, values = [b"content-type", b"content-md5"], [content_type.encode(), md5]
    if encryption_method:
        request.sse = True
        names.append(b"x-amz-server-side-encryption")
        values.append(encryption_method.encode())
    request.take_fields(names, values)
    request.bucket, request.key, request.bucket_row = bucket.name, key, bucket
    request.account_id = bucket.owner_id
    request.scheme, request.client, request.request_id = "https", "", gateway.next_id()
    request.content_length, request.timings, request.memory = len(data), {}, gateway.memory
    request.receive = _given(data)
    try:
        await encryption.prepare(gateway, request)
        with telling(teller_of(request)):
            return await write(gateway, request, Put(gateway, request, Written(bucket.owner_id, grants)))
    finally:
        if request.body is not None:
            request.body.close()


def _given(data: bytes) -> Callable[[], Awaitable[dict[str, Any]]]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": data, "more_body": False}

    return receive
