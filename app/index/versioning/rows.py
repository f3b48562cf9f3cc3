"""The rows of versioned buckets.

See also `app.index.objects.rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import CommitResult


class ListedVersionEntry(NamedTuple):
    """An entry of a version listing: an object's fields, its version id and its state."""

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
    """One page of a version listing, with common prefixes.

    It is ordered by key, and newest first within a key.
    """

    entries: list[ListedVersionEntry]
    prefixes: list[str]
    truncated: bool
    last_key: str
    """The last key or common prefix of the page, empty for an empty page."""
    last_version_id: str
    """Empty when a common prefix came last. The next page continues after both."""
    headers: Sequence[str] = ()
    """The headers of each entry, if the caller requested them."""


class DeleteResult(NamedTuple):
    """The result of a delete in a versioned bucket: the new delete marker, or the removed version."""

    seq: int
    version_id: str
    modified: int
    marker: bool
    """Whether it is, or was, a delete marker."""


class Deletion(NamedTuple):
    """One entry of DeleteObjects."""

    key: str
    version_id: str | None
    conditions: Conditions
    bypass: bool = False
    """Whether to remove it even when a retention of GOVERNANCE protects it."""


Done = CommitResult | DeleteResult | Exception | None
"""The result of an entry of DeleteObjects."""
