"""Parameters of a rename or an append, which rewrite no bytes."""

from __future__ import annotations

from typing import NamedTuple


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


class Rename(NamedTuple):
    """The parameters of a rename."""

    source: str
    """A key, like `target`."""
    target: str
    of_source: Wanted = Wanted()
    of_target: Wanted = Wanted()
    token: str = ""
    """The client token that identifies a retried request; empty for none."""


class Appended(NamedTuple):
    """A blob to append to an object."""

    locator: str
    size: int
    checksum: str
    number: int
    """The number of the part that the blob becomes."""
