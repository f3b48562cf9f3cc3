"""Objects that the gateway itself writes, such as logs: by PutObject, as the bucket's owner.

So quota, versions, default retention and all other settings of the bucket apply to them too.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from sluice_s3.app.access.acl import Grants
from sluice_s3.app.errors import NoSuchBucket
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.engine.outbox import emit_events
from sluice_s3.app.index.objects.rows import CommitResult
from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.s3.acl.grants import NewObjectOwnership
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.notifications.event_context import event_builder_for
from sluice_s3.app.s3.objects.write import PutObject, store_object
from sluice_s3.app.s3.wire import target
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.store import objects

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services


async def put_as_owner(
    services: Services,
    bucket: Bucket,
    key: str,
    data: bytes,
    content_type: str,
    grants: Grants | None = None,
    encryption_method: str = "",
) -> CommitResult:
    """Write an object that is already authorized. Raises as PutObject, and NoSuchBucket.

    `grants` is its ACL, None: only its owner has rights; `encryption_method` empty means the bucket's default. The end
    of a move of the bucket to another store waits for requests, and this is none: what is on the old store after it is
    written again.
    """
    target.validate_key(key)
    bucket = await _read_row(services, bucket)
    while True:
        result = await _put(services, bucket, key, data, content_type, grants, encryption_method)
        written, bucket = bucket, await _read_row(services, bucket)
        if bucket.store == written.store:
            return result
        if bucket.versioning == ENABLED:
            await objects.delete(services.store, bucket.id, key, result.version_id, None, {})


async def _read_row(services: Services, bucket: Bucket) -> Bucket:
    found = await services.index.bucket_of(bucket.id)
    if found is None:
        raise NoSuchBucket()
    return found


async def _put(
    services: Services,
    bucket: Bucket,
    key: str,
    data: bytes,
    content_type: str,
    grants: Grants | None,
    encryption_method: str,
) -> CommitResult:
    md5 = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest())
    request = S3Request()
    request.method, request.operation = "PUT", "PutObject"
    request.raw_path, request.raw_query, request.query = b"/", b"", {}
    names, values = [b"content-type", b"content-md5"], [content_type.encode(), md5]
    if encryption_method:
        request.sse = True
        names.append(b"x-amz-server-side-encryption")
        values.append(encryption_method.encode())
    request.set_headers(names, values)
    request.bucket, request.key, request.bucket_row = bucket.name, key, bucket
    request.account_id = bucket.owner_id
    request.scheme, request.client, request.request_id = "https", "", services.next_id()
    request.content_length, request.timings, request.memory = len(data), {}, services.memory
    request.replace_body(_receive_once(data))
    try:
        await encryption.load_keyring(services, request)
        async with emit_events(event_builder_for(request)):
            return await store_object(
                services, request, PutObject(services, request, NewObjectOwnership(bucket.owner_id, grants))
            )
    finally:
        if request.body is not None:
            request.body.close()


def _receive_once(data: bytes) -> Callable[[], Awaitable[dict[str, Any]]]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": data, "more_body": False}

    return receive
