"""Conditions of a write, checked inside its transaction and before its first write."""

from __future__ import annotations

from typing import NamedTuple

from sluice_s3.app.errors import NoSuchKey, PreconditionFailed


class Conditions(NamedTuple):
    """Conditions of a write, checked inside its transaction.

    ETags have no quotes.
    """

    if_match: str | None = None
    """An ETag, or `*` for "exists"."""
    if_none_match: bool = False
    """True for `If-None-Match: *`."""
    if_match_size: int | None = None
    if_match_modified: int | None = None
    """Milliseconds since the epoch; compared in whole seconds."""
    dated: int | None = None
    """Time of the new version, in milliseconds since the epoch; all versions of the key must be older."""


class Wanted(NamedTuple):
    """Conditions of a rename on its source object or its target object."""

    if_match: str | None = None
    """An ETag, or `*` for "exists"."""
    if_none_match: str | None = None
    """An ETag that the object must not have, or `*` for "does not exist"."""
    modified_since: int | None = None
    """Seconds since the epoch, like `unmodified_since`."""
    unmodified_since: int | None = None

    def fails(self, etag: str | None, modified: int) -> str:
        """Return the first condition that an object does not meet.

        Returns an empty text when it meets all. `etag` is None when there is no object. `modified` is in milliseconds
        since the epoch.
        """
        if self.if_match is not None and (etag is None or self.if_match not in ("*", etag)):
            return "If-Match"
        if self.if_none_match is not None and etag is not None and self.if_none_match in ("*", etag):
            return "If-None-Match"
        if self.modified_since is not None and (etag is None or modified // 1000 <= self.modified_since):
            return "If-Modified-Since"
        if self.unmodified_since is not None and etag is not None and modified // 1000 > self.unmodified_since:
            return "If-Unmodified-Since"
        return ""


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
