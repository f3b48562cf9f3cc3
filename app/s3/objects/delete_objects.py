"""DeleteObjects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from sluice_s3.app.errors import NoSuchKey
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.versioning.rows import DeleteResult, Deletion, Done
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.errors import AccessDenied, InvalidRequest, MalformedXML, NoSuchVersion, S3Error
from sluice_s3.app.s3.errors.from_domain import to_s3_error
from sluice_s3.app.s3.logging.record import SecondaryRecord
from sluice_s3.app.s3.logging.xml import MARK
from sluice_s3.app.s3.object_lock import headers as lock_headers
from sluice_s3.app.s3.request_body import RequestBody
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.wire import conditions, target, xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response
from sluice_s3.app.store import objects

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

MAX_ENTRIES = 1000
DELETE = frozenset({"Object", "Quiet"})
OBJECT = frozenset({"Key", "VersionId", "ETag", "LastModifiedTime", "Size"})
"""Children of a Delete and its Objects; any other is MalformedXML, as on AWS."""


@operation("POST", "bucket", "delete", name="DeleteObjects", action="s3:DeleteObject", authorized_per_object=True)
async def delete_objects(services: Services, request: S3Request) -> Response:
    """Handle DeleteObjects (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html)."""
    body = RequestBody(request, checksum="", etag="")
    if "content-md5" not in request.headers and not body.promised_algorithm:
        raise InvalidRequest("Missing required header for this request: Content-MD5 OR x-amz-checksum-*")
    tree = xml.parse(await body.collect(), "Delete")
    xml.check_children(tree, DELETE)
    quiet = (xml.child_text(tree, "Quiet") or "false").strip().lower() == "true"
    found = tree.findall("Object")
    if not 1 <= len(found) <= MAX_ENTRIES:
        raise MalformedXML()
    entries = [_entry(element) for element in found]
    batch, refusals, allowed = authorization.Batch(request), [], []
    for entry in entries:
        await batch.start_object()
        error = await _authorization_error(services, request, entry)
        refusals.append(error)
        if error is None:
            allowed.append(_with_bypass(request, entry) if lock_headers.BYPASS in request.headers else entry)
    if request.account_id is None and all(isinstance(error, AccessDenied) for error in refusals):
        raise AccessDenied()
    if not allowed:
        request.authorization_pending = False  # nothing is done, and unusable keys need no permission
    results = iter(await _delete(services, request, allowed) if allowed else [])
    answers: list[Done] = [next(results) if error is None else error for error in refusals]
    if MARK in request.bucket_row.settings:
        request.secondary_records = [_logged(request, *one) for one in zip(entries, answers, strict=True)]
    content = "".join(_answer(entry, result, quiet) for entry, result in zip(entries, answers, strict=True))
    return Response(200, list(XML), xml.document("DeleteResult", content))


async def _delete(services: Services, request: S3Request, entries: Sequence[Deletion]) -> Sequence[Done]:
    tree = services.tree_of(request.bucket_row)
    if tree is not None:
        return await tree.delete_many(request.bucket_row, entries, request.timings)
    return await objects.delete_many(services.store, request.bucket_row.id, entries, request.timings)


def _entry(element: Element) -> Deletion:
    xml.check_children(element, OBJECT)
    key = xml.child_text(element, "Key")
    if not key:
        raise MalformedXML()
    etag = xml.child_text(element, "ETag")
    size = xml.child_text(element, "Size")
    modified = xml.child_text(element, "LastModifiedTime")
    modified_ms = None
    if size is not None and (not (size.isascii() and size.isdigit()) or len(size) > 18):
        raise MalformedXML()
    if modified is not None:
        modified_ms = conditions.parse_date(modified)
        if modified_ms is None:
            raise MalformedXML()
    preconditions = Conditions(
        if_match=etag.strip().strip('"') if etag is not None else None,
        if_match_size=int(size) if size is not None else None,
        if_match_modified=modified_ms * 1000 if modified_ms is not None else None,
    )
    return Deletion(key, xml.child_text(element, "VersionId") or None, preconditions)


def _with_bypass(request: S3Request, entry: Deletion) -> Deletion:
    named = entry.version_id is not None
    return entry._replace(bypass=named and lock_headers.bypasses_governance(request, entry.key, entry.version_id))


async def _authorization_error(services: Services, request: S3Request, entry: Deletion) -> S3Error | None:
    """Return the reason for not trying an entry; None if it may be tried."""
    try:
        target.validate_key(entry.key)
        authorization.authorize_object_in_body(request, "s3:DeleteObject", entry.key, entry.version_id)
        if entry.version_id is not None and not version_headers.may_exist(request.bucket_row, entry.version_id):
            raise NoSuchVersion()
        if conditions.reveals_object_state(entry.conditions):
            await authorization.authorize_precondition(services, request, entry.key, entry.version_id)
    except S3Error as error:
        return error
    return None


def _logged(request: S3Request, entry: Deletion, result: Done) -> SecondaryRecord:
    """Return the access log record of one entry."""
    line = SecondaryRecord(request.bucket_row, "BATCH.DELETE.OBJECT", entry.key, entry.version_id or "", "204")
    error = _error(entry, result)
    return line if error is None else line._replace(status=str(error.status), code=error.code)


def _error(entry: Deletion, result: Done) -> S3Error | None:
    """Return the error of an entry. None for success, and for an object that did not exist."""
    if not isinstance(result, Exception) or (isinstance(result, NoSuchKey) and entry.conditions == Conditions()):
        return None
    return to_s3_error(result)


def _answer(entry: Deletion, result: Done, quiet: bool) -> str:
    version = xml.optional("VersionId", entry.version_id)
    error = _error(entry, result)
    if error is None:
        if isinstance(result, DeleteResult) and result.marker:
            version += "<DeleteMarker>true</DeleteMarker>" + xml.element("DeleteMarkerVersionId", result.version_id)
        return "" if quiet else f"<Deleted>{xml.element('Key', entry.key)}{version}</Deleted>"
    return (
        f"<Error>{xml.element('Key', entry.key)}{version}<Code>{error.code}</Code>"
        f"{xml.element('Message', error.text)}</Error>"
    )
