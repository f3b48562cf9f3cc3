"""Conditions of a write, checked inside its transaction and before its first write."""

from __future__ import annotations

from sluice_s3.app.errors import NoSuchKey, PreconditionFailed
from sluice_s3.app.index.rows import Conditions


def check_conditions(conditions: Conditions, etag: str | None, size: int, modified: int) -> None:
    """Raise PreconditionFailed, or NoSuchKey for If-Match on a missing key.

    `etag` is None when there is no object. The conditions on size and time are those of DeleteObject, which do not
    apply to a missing object.
    """
    if conditions.if_match is not None:
        if etag is None:
            raise NoSuchKey()
        if conditions.if_match not in ("*", etag):
            raise PreconditionFailed(condition="If-Match")
    if etag is None:
        return
    if conditions.if_none_match:
        raise PreconditionFailed(condition="If-None-Match")
    if conditions.if_match_size is not None and conditions.if_match_size != size:
        raise PreconditionFailed(condition="x-amz-if-match-size")
    if conditions.if_match_modified is not None and conditions.if_match_modified // 1000 != modified // 1000:
        raise PreconditionFailed(condition="x-amz-if-match-last-modified-time")
