"""PutObject and DeleteObject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.errors import PreconditionFailed
from sluice_s3.app.index.object_lock.protection import LOCKED, NONE
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import CommitResult, NewVersion
from sluice_s3.app.s3.acl import grants as acls
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.errors import InvalidWriteOffset, NotImplemented
from sluice_s3.app.s3.lifecycle import rules as lifecycle
from sluice_s3.app.s3.object_lock import headers as lock_headers
from sluice_s3.app.s3.objects import append
from sluice_s3.app.s3.request_body import RequestBody
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.tagging import tags
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.wire import conditions, metadata, xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Headers, Response
from sluice_s3.app.store import objects
from sluice_s3.app.store.journals.wait import wait_until_journaled
from sluice_s3.app.store.lifecycle.evaluator import MARK
from sluice_s3.app.store.quotas import quota_of
from sluice_s3.storage_drivers.base import BodySource

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services


class PutObject:
    """One PutObject: the steps that all paths share. Raises the errors of its headers."""

    def __init__(
        self,
        services: Services,
        request: S3Request,
        written: acls.NewObjectOwnership,
        body: RequestBody | None = None,
        *,
        preconditions: Conditions | None = None,
    ) -> None:
        self._services = services
        self._request = request
        self.owner_id = written.owner_id
        self.conditions = preconditions or conditions.write_conditions(request)
        object_tags = tags.requested_tags(request)
        if object_tags:
            authorization.authorize_tags(request)
        lock = lock_headers.lock_of_new_object(request)
        seal = None
        if request.sse or request.bucket_row.settings:
            seal = encryption.encryption_of_new_object(services, request)
        self.seal = seal
        scheme = None if seal is None else seal.scheme
        self.stored_headers = metadata.pack_headers(
            metadata.object_headers(request), written.grants, object_tags, lock, scheme
        )
        self.storage_class = metadata.storage_class(request)
        self.body = body or RequestBody(
            request, etag=services.etag_kind(request, self.storage_class), largest=services.settings.max_put
        )
        if lock != NONE and body is None:
            lock_headers.require_checksum(request, self.body)
        self.source: BodySource = self.body
        if seal is not None:
            self.source = seal.source(self.body)

    @property
    def etag(self) -> str:
        """The ETag, available with the body's hashes."""
        etag = self.body.etag
        return etag if self.seal is None else self.seal.etag(etag)

    def describe(self, locator: str) -> NewVersion:
        """Return the version, once the body's hashes are known."""
        body = self.body
        described = (body.size or 0, self.etag, self.stored_headers, self.storage_class, body.algorithm, "FULL_OBJECT")
        return NewVersion(*described, body.checksum, locator, 0, self.owner_id)

    def answer(self, committed: CommitResult) -> Response:
        """Return the response."""
        body = self.body
        headers: Headers = [
            (b"etag", b'"' + self.etag.encode() + b'"'),
            (b"x-amz-checksum-" + body.algorithm.lower().encode(), body.checksum.encode()),
            (b"x-amz-checksum-type", b"FULL_OBJECT"),
        ]
        if self.storage_class != "STANDARD":
            headers.append((b"x-amz-storage-class", self.storage_class.encode()))
        bucket = self._request.bucket_row
        if MARK in bucket.settings:
            seconds = self._services.settings.lifecycle_day_seconds
            version_fields = (self._request.key or "", body.size or 0, committed.modified, self.stored_headers)
            headers += lifecycle.expiration_header(bucket, seconds, *version_fields)
        if self.seal is not None:
            headers += encryption.response_headers(self._request, self.seal.scheme)
        return Response(200, headers + version_headers.headers_of_put(committed.version_id))


def check_time(services: Services, request: S3Request, preconditions: Conditions) -> None:
    """Authorize the new version's time, if the request has one. Raises NotImplemented where there can be none."""
    if preconditions.dated is None:
        return
    if request.appends or services.tree_of(request.bucket_row) is not None:  # a plain file's time is that of its change
        raise NotImplemented(Header=conditions.LAST_MODIFIED)
    if request.method == "DELETE" and ("versionId" in request.query or not request.bucket_row.versioning):
        raise NotImplemented(Header=conditions.LAST_MODIFIED)  # no delete marker is made
    authorization.authorize_time(request)


@operation("PUT", "key", name="PutObject", action="s3:PutObject", streams=True)
async def put_object(services: Services, request: S3Request) -> Response:
    """Handle PutObject (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html)."""
    authorization.require_authorized(request)
    preconditions = conditions.write_conditions(request)
    if preconditions is not conditions.NONE:
        check_time(services, request, preconditions)
        if conditions.reveals_object_state(preconditions):
            await authorization.authorize_precondition(services, request)
    found = await append.object_to_append_to(services, request) if request.appends else None
    if found is not None:
        return await append.append(services, request, found)
    written = await acls.ownership_of_new_object(services, request)
    await encryption.load_keyring(services, request)
    put = PutObject(services, request, written, preconditions=preconditions)
    if request.appends:  # there was no object, and there must still be none
        put.conditions = put.conditions._replace(if_none_match=True)
        try:
            return put.answer(await store_object(services, request, put))
        except PreconditionFailed:
            raise InvalidWriteOffset() from None
    return put.answer(await store_object(services, request, put))


async def store_object(services: Services, request: S3Request, put: PutObject) -> CommitResult:
    """Write the object within its bucket's quota, and make it the current version of the request's key."""
    bucket = request.bucket_row
    if put.seal is not None:
        await encryption.wait_until_key_journaled(services, request, put.seal)
    if quota_of(bucket) is None:
        committed = await _write(services, request, put)
    else:
        async with services.quotas.room(bucket) as room:
            put.body.admit = room.take
            await room.take(put.body.size)
            committed = await _write(services, request, put)
    if LOCKED in put.stored_headers:
        await wait_until_journaled(services.store_of(request), bucket, request.key or "", committed, put.stored_headers)
    return committed


async def _write(services: Services, request: S3Request, put: PutObject) -> CommitResult:
    bucket, key = request.bucket_row, request.key or ""
    put_arguments = (put.source, put.describe, put.conditions, request.timings)
    tree = services.tree_of(bucket)
    if tree is not None:
        return await tree.put(bucket, key, *put_arguments)
    store = services.store_of(request, put.storage_class)
    return await objects.put(store, bucket.id, key, *put_arguments)


def url_of(request: S3Request) -> str:
    """Return the URL of the request's object, with the client's name of this gateway."""
    path = "" if request.virtual_host else f"/{request.bucket}"
    return f"{request.scheme}://{request.headers.get('host', '')}{path}/{xml.url_encode(request.key or '')}"


@operation("DELETE", "key", name="DeleteObject", action="s3:DeleteObject")
async def delete_object(services: Services, request: S3Request) -> Response:
    """Handle DeleteObject (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObject.html)."""
    authorization.require_authorized(request)
    version_id, preconditions = version_headers.requested_version_id(request), conditions.write_conditions(request)
    if preconditions is not conditions.NONE:
        check_time(services, request, preconditions)
        if conditions.reveals_object_state(preconditions):
            await authorization.authorize_precondition(services, request, version_id=version_id)
    tree = services.tree_of(request.bucket_row)
    if tree is not None:
        await tree.delete(request.bucket_row, request.key or "", version_id, preconditions, request.timings)
        return Response(204, version_headers.headers_of_delete(version_id, None))
    address = (services.store, request.bucket_row.id, request.key or "")
    bypass = version_id is not None and lock_headers.bypasses_governance(request, address[2], version_id)
    result = await objects.delete(*address, version_id, preconditions, request.timings, bypass)
    return Response(204, version_headers.headers_of_delete(version_id, result))
