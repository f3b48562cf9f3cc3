"""Object lock as requests say it: the locks of new objects, the default retention of a bucket, and who may pass it by.

"How S3 Object Lock works", Amazon S3 User Guide. What a lock does is decided by `app.index.locks`.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import orjson

from app.index.locks import MODES, NONE, SETTING, Lock
from app.index.rows import Bucket, Version
from app.s3 import metadata, rights, xml
from app.s3.body import Body
from app.s3.errors import InvalidArgument, InvalidRequest
from app.s3.lock_documents import HEADERS, HOLD, HOLDS, MODE, PAST, UNTIL, Default, moment, now
from app.s3.request import S3Request

BYPASS = "x-amz-bypass-governance-retention"
MISSING = "Bucket is missing Object Lock Configuration"


def default_of(bucket: Bucket) -> Default | None:
    """The default retention of a bucket with object lock, None for one without."""
    return _default(bucket.settings) if bucket.settings else None


@lru_cache(maxsize=4096)
def _default(settings: str) -> Default | None:
    found = orjson.loads(settings).get(SETTING)
    return None if found is None else Default(*found)


def check_enabled(bucket: Bucket) -> None:
    """Raises InvalidRequest for a bucket without object lock."""
    if default_of(bucket) is None:
        raise InvalidRequest(MISSING)


# what a request gives what it makes
def of_request(request: S3Request) -> Lock:
    """The lock in a request's headers, if it may give it. Raises InvalidArgument, InvalidRequest, AccessDenied."""
    headers = request.headers
    if MODE not in headers and UNTIL not in headers and HOLD not in headers:
        return NONE
    mode, until, hold = map(headers.get, HEADERS)
    check_enabled(request.bucket_row)
    if (mode is None) != (until is None):
        raise InvalidArgument(f"{UNTIL} and {MODE} must both be supplied", ArgumentName=UNTIL if mode else MODE)
    if mode is not None and mode not in MODES:
        raise InvalidArgument("Unknown wormMode directive.", ArgumentName=MODE, ArgumentValue=mode)
    if hold is not None and hold not in HOLDS:
        raise InvalidArgument("Legal Hold must be either of 'ON' or 'OFF'", ArgumentName=HOLD, ArgumentValue=hold)
    lock = Lock(mode or "", _future(until), None if hold is None else HOLDS[hold])
    if lock.mode:
        rights.check_put_retention(request)
    if lock.hold is not None:
        rights.check_put_legal_hold(request)
    return lock


def _future(text: str | None) -> int:
    if text is None:
        return 0
    until = moment(text)
    if until is None:
        raise InvalidArgument(
            "The retain until date must be provided in ISO 8601 format", ArgumentName=UNTIL, ArgumentValue=text
        )
    if until <= now():
        raise InvalidArgument(PAST, ArgumentName=UNTIL, ArgumentValue=text)
    return until


def of_new(request: S3Request) -> Lock:
    """The lock of an object that a request makes: what it says, else what its bucket gives. Raises as `of_request`."""
    lock = of_request(request)
    return with_default(request.bucket_row, lock) if request.bucket_row.settings else lock


def check_sum(request: S3Request, body: Body) -> None:
    """Raises InvalidRequest for the body of a locked object without a checksum or Content-MD5, as AWS does."""
    if "content-md5" not in request.headers and not body.promised_algorithm:
        raise InvalidRequest(
            "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters"
        )


def with_default(bucket: Bucket, lock: Lock) -> Lock:
    """A lock with the bucket's default retention, unless it has one."""
    default = default_of(bucket)
    if default is None or not default.mode or lock.mode:
        return lock
    return lock._replace(mode=default.mode, until=_end(default, now()))


def _end(default: Default, now: int) -> int:
    """When a retention of the default length ends that begins now. A year has its days by the calendar."""
    begin = datetime.fromtimestamp(now / 1000, UTC)
    if default.years:
        year = begin.year + default.years
        leap_day = (begin.month, begin.day) == (2, 29)
        end = begin.replace(year=year, month=3, day=1) if leap_day else begin.replace(year=year)
    else:
        end = begin + timedelta(days=default.days)
    return math.ceil(end.timestamp() * 1000)


def may_bypass(request: S3Request, key: str, version_id: str | None) -> bool:
    """Whether a request passes by GOVERNANCE: it says so, and its sender has the right to."""
    return request.headers.get(BYPASS, "").lower() == "true" and rights.may_bypass_retention(request, key, version_id)


def lines(request: S3Request, version: Version) -> bytes:
    """The header lines that tell of a version's lock, as far as the caller may see it."""
    lock = metadata.lock(version.headers)
    found = b""
    if lock.mode and rights.may_see(request, "s3:GetObjectRetention", version):
        found = f"{MODE}: {lock.mode}\r\n{UNTIL}: {xml.timestamp(lock.until)}\r\n".encode()
    if lock.hold is not None and rights.may_see(request, "s3:GetObjectLegalHold", version):
        found += f"{HOLD}: {'ON' if lock.hold else 'OFF'}\r\n".encode()
    return found


def completed(bucket: Bucket, kept: str) -> str:
    """What an upload keeps for the object that it makes now: with the bucket's default retention."""
    lock = metadata.lock(kept)
    made = with_default(bucket, lock)
    return kept if made is lock else metadata.renewed(kept, lock=made)
