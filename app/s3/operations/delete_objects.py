"""DeleteObjects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from app.errors import DomainError, NoSuchKey
from app.index.base import Deletion, Done
from app.index.rows import Conditions
from app.index.version_rows import Deleted
from app.s3 import conditions, locks, rights, target, versions, xml
from app.s3.body import Body
from app.s3.dispatch import operation
from app.s3.domain_errors import from_domain
from app.s3.errors import AccessDenied, InternalError, InvalidRequest, MalformedXML, NoSuchVersion, S3Error
from app.s3.logs.configuration import MARK
from app.s3.logs.record import Also
from app.s3.request import S3Request
from app.s3.response import XML, Response
from app.store import objects

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

MAX_ENTRIES = 1000
DELETE = frozenset({"Object", "Quiet"})
OBJECT = frozenset({"Key", "VersionId", "ETag", "LastModifiedTime", "Size"})
"""What a Delete and its Objects may hold; anything else is MalformedXML, as on AWS."""


@operation("POST", "bucket", "delete", name="DeleteObjects", action="s3:DeleteObject", each=True)
async def delete_objects(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html"""
    body = Body(request, checksum="", etag=False)
    if "content-md5" not in request.headers and not body.promised_algorithm:
        raise InvalidRequest("Missing required header for this request: Content-MD5 OR x-amz-checksum-*")
    tree = xml.parse(await body.collect(), "Delete")
    xml.check_children(tree, DELETE)
    quiet = (xml.text_of(tree, "Quiet") or "false").strip().lower() == "true"
    found = tree.findall("Object")
    if not 1 <= len(found) <= MAX_ENTRIES:
        raise MalformedXML()
    entries = [_entry(element) for element in found]
    refusals = [await _refusal(gateway, request, entry) for entry in entries]
    if request.account_id is None and all(isinstance(error, AccessDenied) for error in refusals):
        raise AccessDenied()
    allowed = [entry for entry, error in zip(entries, refusals, strict=True) if error is None]
    if locks.BYPASS in request.headers:
        allowed = [_with_bypass(request, entry) for entry in allowed]
    results = iter(await _delete(gateway, request, allowed) if allowed else [])
    answers: list[Done] = [next(results) if error is None else error for error in refusals]
    if MARK in request.bucket_row.settings:
        request.also_logged = [_logged(request, *one) for one in zip(entries, answers, strict=True)]
    content = "".join(_answer(entry, done, quiet) for entry, done in zip(entries, answers, strict=True))
    return Response(200, list(XML), xml.document("DeleteResult", content))


async def _delete(gateway: Gateway, request: S3Request, entries: Sequence[Deletion]) -> Sequence[Done]:
    tree = gateway.tree_of(request.bucket_row)
    if tree is not None:
        return await tree.delete_many(request.bucket_row, entries, request.timings)
    return await objects.delete_many(gateway.store, request.bucket_row.id, entries, request.timings)


def _entry(element: Element) -> Deletion:
    xml.check_children(element, OBJECT)
    key = xml.text_of(element, "Key")
    if not key:
        raise MalformedXML()
    etag = xml.text_of(element, "ETag")
    size = xml.text_of(element, "Size")
    modified = xml.text_of(element, "LastModifiedTime")
    wanted_time = None
    if size is not None and (not (size.isascii() and size.isdigit()) or len(size) > 18):
        raise MalformedXML()
    if modified is not None:
        wanted_time = conditions.parse_date(modified)
        if wanted_time is None:
            raise MalformedXML()
    wanted = Conditions(
        if_match=etag.strip().strip('"') if etag is not None else None,
        if_match_size=int(size) if size is not None else None,
        if_match_modified=wanted_time * 1000 if wanted_time is not None else None,
    )
    return Deletion(key, xml.text_of(element, "VersionId") or None, wanted)


def _with_bypass(request: S3Request, entry: Deletion) -> Deletion:
    named = entry.version_id is not None
    return entry._replace(bypass=named and locks.may_bypass(request, entry.key, entry.version_id))


async def _refusal(gateway: Gateway, request: S3Request, entry: Deletion) -> S3Error | None:
    """Why an entry is not even tried."""
    try:
        target.check_key(entry.key)
        rights.check_key(request, "s3:DeleteObject", entry.key, entry.version_id)
        if entry.version_id is not None and not versions.is_possible(request.bucket_row, entry.version_id):
            raise NoSuchVersion()
        tells = conditions.tells(entry.conditions)
        await rights.check_match(gateway, request, entry.key, entry.version_id, tells=tells)
    except S3Error as error:
        return error
    return None


def _logged(request: S3Request, entry: Deletion, done: Done) -> Also:
    """What the bucket's access log tells of one entry."""
    line = Also(request.bucket_row, "BATCH.DELETE.OBJECT", entry.key, entry.version_id or "", "204")
    error = _error(entry, done)
    return line if error is None else line._replace(status=str(error.status), code=error.code)


def _error(entry: Deletion, done: Done) -> S3Error | None:
    """What an entry is answered with if it could not be done; that there is nothing to delete is no error."""
    if not isinstance(done, Exception) or (isinstance(done, NoSuchKey) and entry.conditions == Conditions()):
        return None
    error = from_domain(done) if isinstance(done, DomainError) else done
    return error if isinstance(error, S3Error) else InternalError()


def _answer(entry: Deletion, done: Done, quiet: bool) -> str:
    version = xml.optional("VersionId", entry.version_id)
    error = _error(entry, done)
    if error is None:
        if isinstance(done, Deleted) and done.marker:
            version += "<DeleteMarker>true</DeleteMarker>" + xml.element("DeleteMarkerVersionId", done.version_id)
        return "" if quiet else f"<Deleted>{xml.element('Key', entry.key)}{version}</Deleted>"
    return (
        f"<Error>{xml.element('Key', entry.key)}{version}<Code>{error.code}</Code>"
        f"{xml.element('Message', error.text)}</Error>"
    )
