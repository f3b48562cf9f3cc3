"""The versions of a bucket, key by key, in the order of S3's listings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from sluice_s3.app.transfer.endpoints import ENABLED, SUSPENDED, Bucket
from sluice_s3.app.transfer.errors import TransferError, explain, is_not_built

_ENTRY = re.compile(rb"<(Version|DeleteMarker)[\s>]")
_ORDER = "InOrder"
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID = re.compile(f"[0-7][{_DIGITS}]{{25}}")
_ULID_MS = 2000
"""Milliseconds between the time in a ULID and the one that its server lists, rounded."""


class Entry(NamedTuple):
    """A version or a delete marker, as a listing has it."""

    key: str
    version_id: str
    """Empty where the endpoint keeps no versions."""
    modified: int
    """Milliseconds since the epoch."""
    size: int
    etag: str
    """Without quotes; empty for a delete marker."""
    storage_class: str
    marker: bool = False


def milliseconds(moment: datetime) -> int:
    """Return the milliseconds since the epoch."""
    return int(moment.replace(microsecond=0).timestamp()) * 1000 + moment.microsecond // 1000


def iso(modified: int) -> str:
    """Return milliseconds since the epoch as ISO 8601."""
    moment = datetime.fromtimestamp(modified // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{modified % 1000:03}Z"


def keys(bucket: Bucket, prefix: str, *, current_only: bool = False) -> Iterator[tuple[str, list[Entry]]]:
    """Yield each key with its versions, oldest first.

    An endpoint that cannot list versions gives its current objects. Raises TransferError, also for a listing that is
    not in the order of S3, which two listings need to be compared.
    """
    before = ""
    for key, group in groupby(_entries(bucket, prefix, current_only), attrgetter("key")):
        if before and sort_key(key) <= sort_key(before):
            raise TransferError(f"{bucket.where}: its listing is not in the order of keys: {before!r} before {key!r}")
        before = key
        # some servers repeat the last version of a page on the next one
        yield key, list({entry.version_id: entry for entry in reversed(list(group))}.values())


def sort_key(key: str) -> bytes:
    """Return what listings are ordered by: the bytes of UTF-8."""
    return key.encode("utf-8", "surrogatepass")


def _entries(bucket: Bucket, prefix: str, current_only: bool) -> Iterator[Entry]:
    try:
        if bucket.versioning in (ENABLED, SUSPENDED) and not current_only:
            try:
                yield from _versions(bucket, prefix)
                return
            except ClientError as error:
                if not is_not_built(error):
                    raise
        yield from _current(bucket, prefix)
    except (BotoCoreError, ClientError) as error:
        raise explain(error, bucket.where) from error


def of_key(bucket: Bucket, key: str) -> list[Entry]:
    """Return the versions of one key, oldest first. Raises TransferError."""
    for found, entries in keys(bucket, key):
        return entries if found == key else []
    return []


def _versions(bucket: Bucket, prefix: str) -> Iterator[Entry]:
    client = bucket.client
    client.meta.events.register("after-call.s3.ListObjectVersions", _keep_order, unique_id="order")
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket.name, Prefix=prefix):
        kinds = {False: iter(page.get("Versions", ())), True: iter(page.get("DeleteMarkers", ()))}
        listed = [(next(kinds[marker]), marker) for marker in page[_ORDER]]
        # stable: what these do not tell apart stays in the order of the document, where AWS mixes both kinds
        listed.sort(key=lambda one: (sort_key(one[0]["Key"]), not one[0]["IsLatest"], -_fine_time(one[0])))
        for one, marker in listed:
            yield _entry(one, one["VersionId"], marker=marker)


def _keep_order(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
    """Note the order of versions and delete markers in the document, which botocore separates."""
    parsed[_ORDER] = [name == b"DeleteMarker" for name in _ENTRY.findall(http_response.content)]


def _fine_time(one: dict[str, Any]) -> int:
    """Return the time of a version, to the millisecond where its id is a ULID (Versity), whose times are seconds."""
    modified, version_id = milliseconds(one["LastModified"]), one["VersionId"]
    if _ULID.fullmatch(version_id):
        fine = 0
        for digit in version_id[:10]:
            fine = fine * 32 + _DIGITS.index(digit)
        if abs(fine - modified) <= _ULID_MS:
            return fine
    return modified


def _current(bucket: Bucket, prefix: str) -> Iterator[Entry]:
    for page in bucket.client.get_paginator("list_objects_v2").paginate(Bucket=bucket.name, Prefix=prefix):
        for one in page.get("Contents", ()):
            yield _entry(one, "")


def _entry(one: dict[str, Any], version_id: str, *, marker: bool = False) -> Entry:
    etag = "" if marker else str(one.get("ETag", "")).strip('"')
    modified = milliseconds(one["LastModified"])
    return Entry(
        one["Key"], version_id, modified, one.get("Size", 0), etag, one.get("StorageClass", "STANDARD"), marker
    )
