"""The part of the index seam for objects that get another key, or more bytes, without being written anew."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from app.index.rows import Committed, Conditions, NewVersion, Version


class Wanted(NamedTuple):
    """What a rename asks of an object: of the one that it moves, or of the one that it replaces."""

    if_match: str | None = None
    """An ETag, or `*` for "exists"."""
    if_none_match: str | None = None
    """An ETag that it must not have, or `*` for "does not exist"."""
    modified_since: int | None = None
    """Seconds since the epoch, as the next."""
    unmodified_since: int | None = None

    def fails(self, etag: str | None, modified: int) -> str:
        """The condition that an object does not meet, empty when it meets all; `etag` is None when there is none."""
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
    """A rename that is asked for."""

    source: str
    """Key, as the next."""
    target: str
    of_source: Wanted = Wanted()
    of_target: Wanted = Wanted()
    token: str = ""
    """By which it is known when it is asked for again; empty for none."""


class Appended(NamedTuple):
    """A blob that goes behind what an object has."""

    locator: str
    size: int
    checksum: str
    number: int
    """Of the part that it becomes."""


class Rewrites(Protocol):
    """See `app.index.base.Index`, which this is a part of."""

    async def rename_object(self, bucket_id: int, rename: Rename) -> Committed | None:
        """Give the object of a key another key, where it takes the place of what is there; None when it was done
        before by that token.

        Raises NoSuchKey, PreconditionFailed, TokenReused, and InvalidBucketState where versions are kept.
        """
        ...

    async def forget_renames(self, before: int) -> None:
        """Forget tokens of renames that were done before that time, in milliseconds."""
        ...

    async def append(
        self, bucket_id: int, key: str, found: Version, new: NewVersion, more: Appended, conditions: Conditions | None
    ) -> Committed:
        """Make `new` of a key's object: the blobs that it holds, and one behind them. `new.body` is filled in here.

        Raises SourceGone when `found` is not the key's object, as it was found, any more, and what `put_version`
        raises.
        """
        ...
