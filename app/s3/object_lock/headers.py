"""Object lock in requests: locks of new objects, a bucket's default retention, and governance bypass.

"How S3 Object Lock works", Amazon S3 User Guide. `app.index.object_lock.protection` enforces the locks.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import orjson

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.object_lock.protection import MODES, NONE, SETTING, Lock
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.errors import InvalidArgument, InvalidRequest
from sluice_s3.app.s3.object_lock.xml import (
    HEADERS,
    HOLD,
    HOLDS,
    MODE,
    PAST,
    UNTIL,
    DefaultRetention,
    now_ms,
    parse_timestamp,
)
from sluice_s3.app.s3.request_body import RequestBody
from sluice_s3.app.s3.wire import metadata, xml
from sluice_s3.app.s3.wire.request import S3Request

BYPASS = "x-amz-bypass-governance-retention"
MISSING = "Bucket is missing Object Lock Configuration"


def default_retention(bucket: Bucket) -> DefaultRetention | None:
    """Return the default retention of a bucket with object lock; None without object lock."""
    return _default(bucket.settings) if bucket.settings else None


@lru_cache(maxsize=4096)
def _default(settings: str) -> DefaultRetention | None:
    found = orjson.loads(settings).get(SETTING)
    return None if found is None else DefaultRetention(*found)


def require_lock_enabled(bucket: Bucket) -> None:
    """Raise InvalidRequest for a bucket without object lock."""
    if default_retention(bucket) is None:
        raise InvalidRequest(MISSING)


# locks of new objects
def parse_lock(request: S3Request) -> Lock:
    """Return the lock in a request's headers, and authorize it.

    Raises InvalidArgument, InvalidRequest, AccessDenied.
    """
    headers = request.headers
    if MODE not in headers and UNTIL not in headers and HOLD not in headers:
        return NONE
    mode, until, hold = map(headers.get, HEADERS)
    require_lock_enabled(request.bucket_row)
    if (mode is None) != (until is None):
        raise InvalidArgument(f"{UNTIL} and {MODE} must both be supplied", ArgumentName=UNTIL if mode else MODE)
    if mode is not None and mode not in MODES:
        raise InvalidArgument("Unknown wormMode directive.", ArgumentName=MODE, ArgumentValue=mode)
    if hold is not None and hold not in HOLDS:
        raise InvalidArgument("Legal Hold must be either of 'ON' or 'OFF'", ArgumentName=HOLD, ArgumentValue=hold)
    lock = Lock(mode or "", _future(until), None if hold is None else HOLDS[hold])
    if lock.mode:
        authorization.authorize_retention(request)
    if lock.hold is not None:
        authorization.authorize_legal_hold(request)
    return lock


def _future(text: str | None) -> int:
    if text is None:
        return 0
    until = parse_timestamp(text)
    if until is None:
        raise InvalidArgument(
            "The retain until date must be provided in ISO 8601 format", ArgumentName=UNTIL, ArgumentValue=text
        )
    if until <= now_ms():
        raise InvalidArgument(PAST, ArgumentName=UNTIL, ArgumentValue=text)
    return until


def lock_of_new_object(request: S3Request) -> Lock:
    """Return the lock of a new object: the request's, else the bucket's default. Raises as `parse_lock`."""
    lock = parse_lock(request)
    return with_default(request.bucket_row, lock) if request.bucket_row.settings else lock


def require_checksum(request: S3Request, body: RequestBody) -> None:
    """Raise InvalidRequest for a locked object's body without a checksum or Content-MD5, as AWS does."""
    if "content-md5" not in request.headers and not body.promised_algorithm:
        raise InvalidRequest(
            "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters"
        )


def with_default(bucket: Bucket, lock: Lock) -> Lock:
    """Return a lock with the bucket's default retention, unless it has its own."""
    default = default_retention(bucket)
    if default is None or not default.mode or lock.mode:
        return lock
    return lock._replace(mode=default.mode, until=_retention_end(default, now_ms()))


def _retention_end(default: DefaultRetention, now: int) -> int:
    """Return the end of a default retention that begins now. Years follow the calendar."""
    start = datetime.fromtimestamp(now / 1000, UTC)
    if default.years:
        year = start.year + default.years
        leap_day = (start.month, start.day) == (2, 29)
        end = start.replace(year=year, month=3, day=1) if leap_day else start.replace(year=year)
    else:
        end = start + timedelta(days=default.days)
    return math.ceil(end.timestamp() * 1000)


def bypasses_governance(request: S3Request, key: str, version_id: str | None) -> bool:
    """Return whether a request asks to bypass GOVERNANCE, and its caller may."""
    return request.headers.get(BYPASS, "").lower() == "true" and authorization.may_bypass_retention(
        request, key, version_id
    )


def render_lock_headers(request: S3Request, version: Version) -> bytes:
    """Render the headers of a version's lock that the caller may see."""
    lock = metadata.lock(version.headers)
    found = b""
    if lock.mode and authorization.may_disclose(request, "s3:GetObjectRetention", version):
        found = f"{MODE}: {lock.mode}\r\n{UNTIL}: {xml.timestamp(lock.until)}\r\n".encode()
    if lock.hold is not None and authorization.may_disclose(request, "s3:GetObjectLegalHold", version):
        found += f"{HOLD}: {'ON' if lock.hold else 'OFF'}\r\n".encode()
    return found


def headers_of_completed_upload(bucket: Bucket, stored_headers: str) -> str:
    """Return the headers of a completed upload for its object, with the bucket's default retention."""
    lock = metadata.lock(stored_headers)
    object_lock = with_default(bucket, lock)
    return stored_headers if object_lock is lock else metadata.repack(stored_headers, lock=object_lock)
