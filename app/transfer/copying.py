"""Copies one version: bytes, headers, tags, lock. Bytes are compared with what both ends say of them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from sluice_s3.app.transfer import attributes, bodies
from sluice_s3.app.transfer.bodies import Body, Damaged
from sluice_s3.app.transfer.endpoints import Bucket
from sluice_s3.app.transfer.errors import NotTaken, code_of, describe, is_fatal, is_not_built, is_transient
from sluice_s3.app.transfer.listing import Entry, iso, of_key
from sluice_s3.app.transfer.matching import Missing, plan_dated
from sluice_s3.app.transfer.open_uploads import OpenUploads
from sluice_s3.app.transfer.report import Report

PAUSES = (0.5, 3.0)
"""Seconds before the second and third attempt at a version, besides what botocore waits for each request."""


@dataclass(frozen=True)
class Choices:
    """What a transfer takes."""

    current_only: bool = False
    size_only: bool = False
    acls: bool = False
    settings: bool = True
    classes: dict[str, str] = field(default_factory=dict)
    """Storage classes of the destination by those of the source."""


class Copier:
    """Copies versions from one bucket to another. Called by many threads."""

    def __init__(
        self,
        source: Bucket,
        target: Bucket,
        choices: Choices,
        report: Report,
        parts_pool: ThreadPoolExecutor,
        uploads: OpenUploads,
    ) -> None:
        self._source = source
        self._target = target
        self._choices = choices
        self._report = report
        self._parts_pool = parts_pool
        self._uploads = uploads

    def copy(self, missing: Missing) -> None:
        """Copy a version, several times if need be.

        Raises NotTaken for one that cannot be copied, and botocore's errors when an endpoint does not answer.
        """
        entry = missing.entry
        for pause in (*PAUSES, None):
            try:
                with self._target.connection.dated(iso(missing.modified) if self._target.dated else ""):
                    self._mark(entry) if entry.marker else self._copy_object(entry)
                return
            except ClientError as error:
                if code_of(error) == "PreconditionFailed" and self._target.dated:
                    self._require_present(missing)  # of an earlier attempt whose answer was lost
                    return
                if is_fatal(error):
                    raise
                if not is_transient(error):
                    raise NotTaken(describe(error)) from error
                if pause is None:
                    raise
            except ParamValidationError as error:
                raise NotTaken(describe(error)) from error
            except Damaged as error:
                if pause is None:
                    raise NotTaken(str(error)) from error
            except (BotoCoreError, OSError):
                if pause is None:
                    raise
            time.sleep(pause)

    def _require_present(self, missing: Missing) -> None:
        if plan_dated(
            [missing.entry._replace(modified=missing.modified)], of_key(self._target, missing.entry.key)
        ).present:
            return
        raise NotTaken("the destination has a newer version of the key")

    def _mark(self, entry: Entry) -> None:
        self._target.client.delete_object(Bucket=self._target.name, Key=entry.key)
        self._report.add("markers")

    def _copy_object(self, entry: Entry) -> None:
        parts = bodies.part_count(entry.etag)
        etag = self._copy_parts(entry, parts) if parts or entry.size > bodies.MAX_PUT else self._copy_whole(entry)
        self._report.add("objects")
        self._report.add("bytes", entry.size)
        if etag != entry.etag and bodies.part_count(etag) != parts:
            self._report.not_taken(
                "ETag", "the copy has another one, because its parts are others", entry.key, entry.version_id
            )

    def _copy_whole(self, entry: Entry) -> str:
        """Copy by one PutObject; return the ETag at the destination."""
        response = self._source.client.get_object(**bodies.address(self._source, entry))
        body = Body(response)
        try:
            bodies.check(body, entry)
            arguments = self._attributes(entry, response) | attributes.checksum(response)
            arguments |= {"ContentMD5": body.content_md5, "ContentLength": body.size}
            put = self._target.client.put_object
            stored = self._send(
                entry, lambda given: put(**self._address(entry), Body=body.rewound(), **given), arguments
            )
            etag = str(stored.get("ETag", "")).strip('"')
            if bodies.is_md5(etag) and bodies.has_md5_etag(stored) and etag != body.md5:
                raise Damaged(f"the destination stored bytes of MD5 {etag}, not {body.md5}")
            return etag
        finally:
            body.close()

    def _attributes(self, entry: Entry, response: dict[str, Any], *, count_known: bool = True) -> dict[str, Any]:
        """Return the parameters of the write that makes the copy."""
        found = attributes.of_response(response, self._choices.classes)
        if response.get("TagCount") or not count_known:
            found |= attributes.tagging(self._source, entry)
        if self._choices.acls:
            acl = attributes.canned_acl(self._source, entry)
            if acl is None:
                self._lose("ACL", "it is none of the canned ones", entry)
            elif acl:
                found["ACL"] = acl
        if response.get("MissingMeta"):
            self._lose("metadata", "the source cannot send all of it", entry)
        return found

    def _address(self, entry: Entry) -> dict[str, str]:
        return {"Bucket": self._target.name, "Key": entry.key}

    def _lose(self, what: str, reason: str, entry: Entry) -> None:
        self._report.not_taken(what, reason, entry.key, entry.version_id)

    def _send(self, entry: Entry, send: Any, arguments: dict[str, Any]) -> Any:
        """Send a write; leave out, and report, what the destination does not know."""
        while True:
            try:
                return send(arguments)
            except ClientError as error:
                fault = attributes.part_at_fault(error, arguments)
                if not fault:
                    raise
                if fault != "checksum":  # the bytes are compared by Content-MD5 as well
                    self._lose(fault, describe(error), entry)
                arguments = {name: arguments[name] for name in arguments if name not in attributes.OPTIONAL[fault]}

    def _copy_parts(self, entry: Entry, parts: int) -> str:
        """Copy by a multipart upload with the source's parts; return the ETag at the destination."""
        head, first = self._head(entry, parts)
        pieces = bodies.ranges(entry, parts, first)
        if not pieces:  # of a body of 0 bytes
            return self._copy_whole(entry)
        arguments = self._attributes(entry, head, count_known="TagCount" in head)
        arguments |= attributes.checksum_of_parts(head) if self._target.dated else {}
        upload_id = self._send(entry, lambda given: self._uploads.begin(entry.key, **given), arguments)
        completed = False
        try:
            send = partial(self._copy_part, entry, upload_id, arguments.get("ChecksumAlgorithm"))
            sent = self._send_all(send, pieces)
            if sum(size for _, size, _ in sent) != entry.size:
                raise Damaged("the parts are not as long as the object")
            self._check_parts(entry, head, [md5 for _, _, md5 in sent])
            named = {"Parts": [part for part, _, _ in sent]}
            done = self._target.client.complete_multipart_upload(
                **self._address(entry), UploadId=upload_id, MultipartUpload=named
            )
            completed = True
            return str(done.get("ETag", "")).strip('"')
        finally:
            if not completed:
                self._uploads.abort(entry.key, upload_id)
            self._uploads.ended(upload_id)

    def _send_all(self, send: Any, pieces: list[dict[str, Any]]) -> list[tuple[dict[str, Any], int, str]]:
        futures = [self._parts_pool.submit(send, number, piece) for number, piece in enumerate(pieces, 1)]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def _head(self, entry: Entry, parts: int) -> tuple[dict[str, Any], int | None]:
        """Return the headers of a version, and the size of its first part where the source tells it."""
        address = bodies.address(self._source, entry)
        if parts:
            try:
                head = self._source.client.head_object(**address, PartNumber=1, ChecksumMode="ENABLED")
            except ClientError as error:
                if is_transient(error) and not is_not_built(error):
                    raise
            else:
                if head.get("PartsCount") == parts:
                    # the checksum of an answer with a part number is the part's at some servers
                    return self._source.client.head_object(**address, ChecksumMode="ENABLED"), head["ContentLength"]
        return self._source.client.head_object(**address, ChecksumMode="ENABLED"), None

    def _copy_part(
        self, entry: Entry, upload_id: str, algorithm: str | None, number: int, piece: dict[str, Any]
    ) -> tuple[dict[str, Any], int, str]:
        """Copy a part; return what Complete names of it, its size, and its MD5."""
        # conditional, so that all parts are of the same object
        response = self._source.client.get_object(**bodies.address(self._source, entry), **piece, IfMatch=entry.etag)
        body = Body(response)
        try:
            stored = self._target.client.upload_part(
                **self._address(entry),
                UploadId=upload_id,
                PartNumber=number,
                Body=body.rewound(),
                ContentLength=body.size,
                ContentMD5=body.content_md5,
                **({"ChecksumAlgorithm": algorithm} if algorithm else {}),
            )
            named = {name: stored[name] for name in stored if name.startswith("Checksum") and name != "ChecksumType"}
            return {"PartNumber": number, "ETag": stored["ETag"], **named}, body.size, body.md5
        finally:
            body.close()

    def _check_parts(self, entry: Entry, head: dict[str, Any], md5s: list[str]) -> None:
        """Compare the parts with the source's ETag, where it is made of them. Raises Damaged."""
        known = bodies.part_count(entry.etag) == len(md5s) and bodies.has_md5_etag(head)
        if known and head.get("PartsCount") == len(md5s) and bodies.multipart_etag(md5s) != entry.etag:
            raise Damaged("the MD5s of the parts do not make the object's ETag")
