"""PutObject and DeleteObject."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING

from app.errors import NotNow, PreconditionFailed
from app.index.locks import NONE
from app.index.rows import Committed, NewVersion
from app.index.version_rows import Deleted
from app.s3 import acls, conditions, encryption, lifecycle, locks, metadata, rights, tags, versions, xml
from app.s3.body import Body
from app.s3.dispatch import Change, operation
from app.s3.errors import InvalidWriteOffset
from app.s3.operations import append
from app.s3.request import S3Request
from app.s3.response import Headers, Response
from app.store import objects
from app.store.lifecycle import MARK
from app.store.locked import written_down
from app.store.quotas import quota_of
from app.store.sealing import Sealed
from storage_drivers.base import Buffer, Source

if TYPE_CHECKING:
    from app.s3.gateway import Gateway


class Put:
    """One object that is put: what all ways of it share. Raises what its headers can be wrong in."""

    def __init__(self, gateway: Gateway, request: S3Request, written: acls.Written, body: Body | None = None) -> None:
        self._gateway = gateway
        self._request = request
        self.owner_id = written.owner_id
        self.conditions = conditions.write_conditions(request)
        given = tags.of_request(request)
        if given:
            rights.check_put_tags(request)
        lock = locks.of_new(request)
        seal = None
        if request.sse or request.bucket_row.settings:
            seal = encryption.of_new(gateway, request)
        self.seal = seal
        scheme = None if seal is None else seal.scheme
        self.kept = metadata.encode(metadata.kept_headers(request), written.grants, given, lock, scheme)
        self.storage_class = metadata.storage_class(request)
        self.body = body or Body(request, largest=gateway.settings.max_put)
        if lock != NONE and body is None:
            locks.check_sum(request, self.body)
        self.source: Source = self.body
        if seal is not None:
            self.source = seal.source(self.body)

    @property
    def etag(self) -> str:
        """The ETag, known with the body's hashes."""
        etag = self.body.etag
        return etag if self.seal is None else self.seal.etag(etag)

    def sealed_whole(self, piece: Buffer) -> Buffer:
        """All of the source, of a body that is here whole."""
        assert isinstance(self.source, Sealed)
        return self.source.whole(piece)

    def describe(self, locator: str) -> NewVersion:
        """The version, once the body's hashes are known."""
        body = self.body
        described = (body.size or 0, self.etag, self.kept, self.storage_class, body.algorithm, "FULL_OBJECT")
        return NewVersion(*described, body.checksum, locator, 0, self.owner_id)

    def answer(self, committed: Committed) -> Response:
        """What the client is told of it."""
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
            seconds = self._gateway.settings.lifecycle_day_seconds
            told = (self._request.key or "", body.size or 0, committed.modified, self.kept)
            headers += lifecycle.expiration(bucket, seconds, *told)
        if self.seal is not None:
            headers += encryption.answered(self._request, self.seal.scheme)
        return Response(200, headers + versions.of_written(committed.version_id))


def _begin_put(gateway: Gateway, request: S3Request, data: bytes) -> Change:
    assert request.key is not None
    if rights.must_ask_to_match(request):
        raise NotNow
    if request.appends or quota_of(request.bucket_row) is not None or locks.default_of(request.bucket_row) is not None:
        raise NotNow  # to wait for the journals, or for room, or to look first
    if request.sse or request.bucket_row.settings:
        encryption.check_now(gateway, request)
    put = Put(gateway, request, acls.written_now(request))
    if put.seal is not None:
        encryption.check_ready(gateway, request, put.seal)
    piece = put.body.take_whole(data)
    if put.seal is not None:
        piece = put.sealed_whole(piece)
    place = (gateway.store_of(request, put.storage_class), request.bucket_row.id, request.key)
    future = objects.begin_put(*place, piece, put.source, put.describe, put.conditions, request.timings)
    return Change(future, lambda done: put.answer(done.result()))


@operation("PUT", "key", name="PutObject", action="s3:PutObject", streams=True, begin=_begin_put)
async def put_object(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html"""
    await rights.check_match(gateway, request, tells=conditions.tells(conditions.write_conditions(request)))
    found = await append.existing(gateway, request) if request.appends else None
    if found is not None:
        return await append.append(gateway, request, found)
    written = await acls.written(gateway, request)
    await encryption.prepare(gateway, request)
    put = Put(gateway, request, written)
    if request.appends:  # there was nothing to append to, and there must still be nothing
        put.conditions = put.conditions._replace(if_none_match=True)
        try:
            return put.answer(await write(gateway, request, put))
        except PreconditionFailed:
            raise InvalidWriteOffset() from None
    return put.answer(await write(gateway, request, put))


async def write(gateway: Gateway, request: S3Request, put: Put) -> Committed:
    """Write what is put, and make it the current version of the request's key."""
    key = request.key or ""
    tree = gateway.tree_of(request.bucket_row)
    how = (put.source, put.describe, put.conditions, request.timings)
    if put.seal is not None:
        await encryption.ready(gateway, request, put.seal)
    async with gateway.quotas.room(request.bucket_row) as room:
        put.body.admit = room.take
        await room.take(put.body.size)
        if tree is not None:
            return await tree.put(request.bucket_row, key, *how)
        store = gateway.store_of(request, put.storage_class)
        committed = await objects.put(store, request.bucket_row.id, key, *how)
    await written_down(gateway.store_of(request), request.bucket_row, key, committed, put.kept)
    return committed


def url_of(request: S3Request) -> str:
    """Where the request's object is, as its client names this gateway."""
    path = "" if request.virtual_host else f"/{request.bucket}"
    return f"{request.scheme}://{request.headers.get('host', '')}{path}/{xml.url_encode(request.key or '')}"


def _begin_delete(gateway: Gateway, request: S3Request, data: bytes) -> Change:
    if data or rights.must_ask_to_match(request):
        raise NotNow
    asked, wanted = versions.asked(request), conditions.write_conditions(request)
    place = (gateway.store, request.bucket_row.id, request.key or "")
    bypass = asked is not None and locks.may_bypass(request, place[2], asked)
    started = perf_counter()
    future = objects.begin_delete(*place, asked, wanted, bypass)

    def answer(done: asyncio.Future[Committed | Deleted | None]) -> Response:
        # here, since a callback of its own is a hundredth of a DELETE
        request.timings["commit"] = perf_counter() - started
        return Response(204, versions.of_delete(asked, done.result()))

    return Change(future, answer)


@operation("DELETE", "key", name="DeleteObject", action="s3:DeleteObject", begin=_begin_delete)
async def delete_object(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObject.html"""
    asked, wanted = versions.asked(request), conditions.write_conditions(request)
    await rights.check_match(gateway, request, version_id=asked, tells=conditions.tells(wanted))
    tree = gateway.tree_of(request.bucket_row)
    if tree is not None:
        await tree.delete(request.bucket_row, request.key or "", asked, wanted, request.timings)
        return Response(204, versions.of_delete(asked, None))
    place = (gateway.store, request.bucket_row.id, request.key or "")
    bypass = asked is not None and locks.may_bypass(request, place[2], asked)
    done = await objects.delete(*place, asked, wanted, request.timings, bypass)
    return Response(204, versions.of_delete(asked, done))
