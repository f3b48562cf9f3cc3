"""The rows of objects: versions, pages of a listing, and the parameters of renames and appends.

Times are in milliseconds since the epoch, UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sluice_s3.app.index.objects.conditions import Wanted

NULL_VERSION = "null"
"""The version id of an object in an unversioned (or suspended) bucket."""


class Version(NamedTuple):
    """One version of an object.

    `seq` is its commit sequence number, unique in the store, which names the row and orders it.
    """

    seq: int
    key: str
    version_id: str
    size: int
    etag: str
    """Without quotes."""
    modified: int
    headers: str
    """A JSON object of the answer headers that the object keeps (`content-type`, `x-amz-meta-…`), names in lower
    case."""
    storage_class: str
    checksum_algorithm: str
    """`CRC32`, `SHA256` and so on, as `x-amz-checksum-algorithm` names it, or empty."""
    checksum_type: str
    """`FULL_OBJECT`, `COMPOSITE` or empty."""
    checksum: str
    """Base64, with `-N` after it when composite."""
    body: str
    """A locator, or `PIECES` and a number, or empty for an object of 0 bytes."""
    parts: int
    """Number of parts of a multipart object, 0 for others."""
    owner_id: str

    @property
    def is_marker(self) -> bool:
        """Whether it is a delete marker: every object has an ETag."""
        return not self.etag


class NewVersion(NamedTuple):
    """The fields of a version that PUT, Copy and Complete pass to the index.

    The index adds sequence, version id and time.
    """

    size: int
    etag: str
    headers: str
    storage_class: str
    checksum_algorithm: str
    checksum_type: str
    checksum: str
    body: str
    parts: int
    owner_id: str


class ListedVersion(NamedTuple):
    """The fields of a current object in a listing; the covering index has all.

    The owner is not among them: it is that of the bucket, and would add 64 bytes to each row that no listing shows.
    """

    key: str
    size: int
    etag: str
    modified: int
    storage_class: str
    checksum_algorithm: str
    checksum_type: str


class Page(NamedTuple):
    """One page of a listing: entries and common prefixes in one UTF-8 byte order."""

    rows: list[tuple[Any, ...]]
    """The entries as plain tuples, because naming the fields of a thousand costs as much as rendering some hundred."""
    prefixes: list[str]
    truncated: bool
    last: str
    """The last key or common prefix of the page, after which the next page continues; empty for an empty page."""
    headers: Sequence[str] = ()
    """The headers of each entry, if the caller requested them."""

    @property
    def entries(self) -> list[ListedVersion]:
        """The rows with named fields."""
        return list(map(ListedVersion._make, self.rows))


class CommitResult(NamedTuple):
    """The result of a commit: the new version, or the version that a delete removed."""

    seq: int
    version_id: str
    modified: int


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
