"""Conditions of requests: reads and copy sources are checked here, writes by the index.

Sources: RFC 9110 §13; "Conditional requests", Amazon S3 User Guide. ETags here are without quotes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime

from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.wire.dates import parse_http, parse_iso
from sluice_s3.app.s3.wire.request import S3Request

_COPY = "x-amz-copy-source-"
_DISPLAY = {
    "if-match": "If-Match",
    "if-none-match": "If-None-Match",
    "if-modified-since": "If-Modified-Since",
    "if-unmodified-since": "If-Unmodified-Since",
}
REVEALING_HEADERS = frozenset({"if-match", "x-amz-if-match-size", "x-amz-if-match-last-modified-time"})
"""Headers of a write or a delete whose outcome reveals an object's state."""
LAST_MODIFIED = "x-amz-sluice-last-modified"
"""Header of a write: the new version's time, for copies from elsewhere. S3 has none; its prefix means that it is
signed."""
DATED_OPERATIONS = frozenset({"PutObject", "CompleteMultipartUpload", "DeleteObject"})
_AHEAD_MS = 900_000
"""Milliseconds that a source's clock may be ahead."""
_OF_WRITES = REVEALING_HEADERS.union(_DISPLAY, [LAST_MODIFIED])
NONE = Conditions()


def check_read(headers: Mapping[str, str], etag: str, modified: int, *, now: float | None = None) -> bool:
    """Return whether a GET or HEAD is answered 304.

    `modified` is milliseconds. `now` is seconds. Raises PreconditionFailed.
    """
    if _DISPLAY.keys().isdisjoint(headers):
        return False
    failed = _first_failed(headers, "", etag, modified // 1000, now)
    if not failed:
        return False
    if failed in ("if-none-match", "if-modified-since"):
        return True
    raise errors.PreconditionFailed(Condition=_DISPLAY[failed])


def check_copy_source(headers: Mapping[str, str], etag: str, modified: int, *, now: float | None = None) -> None:
    """Check the `x-amz-copy-source-if-…` headers against the source. Raises PreconditionFailed."""
    failed = _first_failed(headers, _COPY, etag, modified // 1000, now)
    if failed:
        raise errors.PreconditionFailed(Condition=_COPY + _DISPLAY[failed])


def write_conditions(request: S3Request) -> Conditions:
    """Return the conditions of a write or a delete, for the index to check.

    Raises NotImplemented for forms that S3 lacks: several ETags, If-None-Match with an ETag, HTTP dates. Raises
    InvalidArgument for an invalid size or time.
    """
    headers = request.headers
    if _OF_WRITES.isdisjoint(headers):
        return NONE
    if_match = headers.get("if-match")
    if_none_match = headers.get("if-none-match")
    size = headers.get("x-amz-if-match-size")
    matched = headers.get("x-amz-if-match-last-modified-time")
    for name in ("if-modified-since", "if-unmodified-since"):
        if name in headers:
            raise errors.NotImplemented(Header=_DISPLAY[name])
    dated = headers.get(LAST_MODIFIED)
    if if_match is if_none_match is size is matched is dated is None:
        return NONE
    if if_none_match is not None and if_none_match.strip() != "*":
        raise errors.NotImplemented(Header="If-None-Match")
    if if_match is not None and "," in if_match:
        raise errors.NotImplemented(Header="If-Match")
    return Conditions(
        if_match=None if if_match is None else unquote_etag(if_match),
        if_none_match=if_none_match is not None,
        if_match_size=None if size is None else _size(size),
        if_match_modified=None if matched is None else _time(matched),
        dated=None if dated is None else _time_of_version(dated),
    )


def reveals_object_state(values: Conditions) -> bool:
    """Return whether the outcome reveals more of an object than its existence."""
    named = values.if_match is not None and values.if_match != "*"
    return named or values.if_match_size is not None or values.if_match_modified is not None


def unquote_etag(text: str) -> str:
    """Return an ETag without its quotes. A weak one keeps its mark, and so equals none (RFC 9110 §8.8.3.2)."""
    text = text.strip(" \t")
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == '"' else text


def parse_date(text: str) -> int | None:
    """Return seconds since the epoch of an HTTP or ISO 8601 date. None for other texts. SDKs send both forms."""
    seconds = parse_http(text)
    return parse_iso(text) if seconds is None else seconds


def _size(text: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise errors.InvalidArgument(ArgumentName="x-amz-if-match-size", ArgumentValue=text[:64])
    return int(text)


def _time(text: str) -> int:
    seconds = parse_date(text)
    if seconds is None:
        raise errors.InvalidArgument(ArgumentName="x-amz-if-match-last-modified-time", ArgumentValue=text[:64])
    return seconds * 1000


def _time_of_version(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
        milliseconds = moment.replace(microsecond=0).timestamp() * 1000 + moment.microsecond // 1000
    except (ValueError, OverflowError):
        raise errors.InvalidArgument(ArgumentName=LAST_MODIFIED, ArgumentValue=text[:64]) from None
    if moment.tzinfo is None or not 0 < milliseconds <= time.time() * 1000 + _AHEAD_MS:
        raise errors.InvalidArgument(ArgumentName=LAST_MODIFIED, ArgumentValue=text[:64])
    return int(milliseconds)


def _first_failed(headers: Mapping[str, str], prefix: str, etag: str, modified: int, now: float | None) -> str:
    """Return the first failed condition (RFC 9110 §13.2.2). Empty if all hold."""
    if_match = headers.get(prefix + "if-match")
    if if_match is not None:
        if not _matches(if_match, etag, weak=False):
            return "if-match"
    else:
        since = _date(headers.get(prefix + "if-unmodified-since"))
        if since is not None and modified > since:
            return "if-unmodified-since"
    if_none_match = headers.get(prefix + "if-none-match")
    if if_none_match is not None:
        if _matches(if_none_match, etag, weak=True):
            return "if-none-match"
    else:
        since = _date(headers.get(prefix + "if-modified-since"))
        if since is not None and modified <= since <= (time.time() if now is None else now):
            return "if-modified-since"
    return ""


def _matches(value: str, etag: str, *, weak: bool) -> bool:
    for entry in value.split(","):
        candidate = entry.strip(" \t")
        if candidate == "*":
            return True
        if weak:
            candidate = candidate.removeprefix("W/")
        if unquote_etag(candidate) == etag:
            return True
    return False


def _date(value: str | None) -> int | None:
    return None if value is None else parse_http(value)
