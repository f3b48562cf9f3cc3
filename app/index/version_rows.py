"""The rows of buckets that keep versions, as `rows`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class ListedAny(NamedTuple):
    """What a listing of versions shows of one: what a listing shows of an object, and which version it is."""

    key: str
    size: int
    etag: str
    modified: int
    storage_class: str
    checksum_algorithm: str
    checksum_type: str
    version_id: str
    state: int
    """See `CURRENT`, `MARKER`, `NONCURRENT` and `OLD_MARKER` in the schema."""


class VersionsPage(NamedTuple):
    """One page of a listing of versions: by key, of one key the newest first; with common prefixes."""

    entries: list[ListedAny]
    prefixes: list[str]
    truncated: bool
    last_key: str
    """The last key or common prefix of the page, empty for an empty page."""
    last_version_id: str
    """Empty when a common prefix came last. The next page goes on from both."""
    headers: Sequence[str] = ()
    """The headers of each entry, if they were asked for."""


class Deleted(NamedTuple):
    """What a delete answers in a bucket that keeps versions: the delete marker it made, or the version it removed."""

    seq: int
    version_id: str
    modified: int
    marker: bool
    """It is, or was, a delete marker."""
