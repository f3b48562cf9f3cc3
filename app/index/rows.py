"""The rows of the index as the rest of the service sees them.

Times are in milliseconds since the epoch, UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sluice_s3.app.index.identity_rows import AccessKey as AccessKey
from sluice_s3.app.index.identity_rows import Account as Account

NULL_VERSION = "null"
"""The version id of an object in an unversioned (or suspended) bucket."""

PIECES = "pieces:"
"""Prefix of a body that is made of the rows of `pieces` under the number that follows. Any other body is one blob's
locator."""

TREE = "t:"
"""Prefix of a plain file's locator; a store's name may stand before it. A plain file has its own rules: no
two rows reference it, and it never waits in the discard queue."""


def is_plain_file(body: str) -> bool:
    """Return whether a body is a plain file at its key's path."""
    return body.startswith(TREE) or body.startswith(TREE, body.find("/") + 1)


def tree_upload(body: str) -> int:
    """Return the upload whose pieces hold the parts of a plain file.

    Returns 0 for a file that was not made of parts. The upload follows the file's stamp, in hex: `t:STAMP+UPLOAD:PATH`.
    """
    return int(body.partition(TREE)[2].partition(":")[0].partition("+")[2] or "0", 16)


def without_upload(body: str) -> str:
    """Return the locator of a plain file as its store knows it."""
    name, _, rest = body.partition(TREE)
    stamp, _, path = rest.partition(":")
    return f"{name}{TREE}{stamp.partition('+')[0]}:{path}"


def with_upload(locator: str, upload: int) -> str:
    """Return the body of a plain file with the upload whose pieces hold its parts."""
    name, _, rest = locator.partition(TREE)
    stamp, _, path = rest.partition(":")
    return f"{name}{TREE}{stamp}+{upload:x}:{path}"


class Bucket(NamedTuple):
    """A bucket.

    `id` is never reused for another bucket, whatever its name.
    """

    id: int
    name: str
    owner_id: str
    region: str
    created: int
    store: str = "default"
    """The store for new data."""
    source: str = ""
    """The store from which older data is being moved; empty for none."""
    moved: int = 0
    """The commit sequence number at which its last move began or ended, 0 without a move."""
    settings: str = ""
    """The settings: a JSON object by name of the setting; empty when nothing was ever configured."""
    versioning: int = 0
    """0 for a bucket that was never versioned; else see `ENABLED` and `SUSPENDED` in the schema."""


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


class Upload(NamedTuple):
    """A multipart upload.

    `id` is the number in the public `upload_id`.
    """

    id: int
    upload_id: str
    bucket_id: int
    key: str
    initiated: int
    headers: str
    storage_class: str
    checksum_algorithm: str
    checksum_type: str
    owner_id: str
    completed_seq: int
    """The sequence of the version that Complete made; else `OPEN` or `ABORTED` in the schema."""
    completed_version_id: str = ""


class Extent(NamedTuple):
    """A run of `size` bytes at `offset` of the blob at `locator`."""

    locator: str
    offset: int
    size: int


class Part(NamedTuple):
    """A part of an open upload."""

    number: int
    size: int
    etag: str
    modified: int
    checksum_algorithm: str
    checksum: str
    extents: tuple[Extent, ...]
    """Empty for a part of 0 bytes."""


class Piece(NamedTuple):
    """A run of bytes of a completed multipart object.

    It has `size` bytes at `start` of the object.
    """

    start: int
    size: int
    part_number: int
    locator: str
    offset: int
    """Where the run starts in its blob, in bytes."""


class ObjectPart(NamedTuple):
    """A part of a completed multipart object, as GetObjectAttributes and `partNumber` show it."""

    number: int
    start: int
    size: int
    checksum: str


class CommitResult(NamedTuple):
    """The result of a commit: the new version, or the version that a delete removed."""

    seq: int
    version_id: str
    modified: int


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


class Intent(NamedTuple):
    """A write intent: a change of a plain file, which locks the file's key.

    It is replayed or undone when its writer dies.
    """

    id: int
    incarnation: int
    bucket_id: int
    key: str
    kind: str
    """`put`, `complete` or `delete`."""
    body: str
    """The new body of the key; for a delete, the old one."""
    blob_id: int
    """The id of the file that was written aside; 0 for a delete."""
    upload: int
    """The upload of a complete, else 0."""
    new: str
    """JSON: the fields of the new version; empty for a delete."""
    parts: str
    """JSON: number, size and checksum of each part of a complete; else empty."""


class ExternalFile(NamedTuple):
    """A plain file that other programs created or changed.

    Its row is missing or does not match it.
    """

    key: str
    seen: int
    """Sequence of the key's current version when the file was examined, 0 without one."""
    size: int
    etag: str
    headers: str
    body: str
    modified: int


class PendingHash(NamedTuple):
    """A current version with a placeholder for its ETag, which is not known yet."""

    seq: int
    bucket_id: int
    key: str
    size: int
    body: str


def extents_of(body: str, size: int) -> tuple[Extent, ...]:
    """Return the extents of a body that is one blob."""
    return (Extent(body, 0, size),) if size else ()
