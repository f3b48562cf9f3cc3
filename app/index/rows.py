"""The rows of the index as the rest of the service sees them. Times are milliseconds since the epoch, UTC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sluice_s3.app.index.identity_rows import AccessKey as AccessKey
from sluice_s3.app.index.identity_rows import Account as Account

NULL_VERSION = "null"
"""The version id of what an unversioned (or suspended) bucket holds."""

PIECES = "pieces:"
"""A body that starts so is made of the rows of `pieces` under that number; any other body is one blob's locator."""

TREE = "t:"
"""How the locator of a plain file begins, which has its own laws (DESIGN §4, layout *tree*): no two rows hold it, and
it never waits for its discard. A store's name may stand before it."""


def is_plain_file(body: str) -> bool:
    """Whether a body is a plain file at its key's path."""
    return body.startswith(TREE) or body.startswith(TREE, body.find("/") + 1)


def tree_upload(body: str) -> int:
    """The upload whose pieces tell the parts of a plain file, 0 when it was not made of parts.

    It stands behind the file's stamp: `t:STAMP+UPLOAD:PATH`.
    """
    return int(body.partition(TREE)[2].partition(":")[0].partition("+")[2] or "0", 16)


def without_upload(body: str) -> str:
    """The locator of a plain file as its store knows it."""
    name, _, rest = body.partition(TREE)
    stamp, _, path = rest.partition(":")
    return f"{name}{TREE}{stamp.partition('+')[0]}:{path}"


def with_upload(locator: str, upload: int) -> str:
    """The body of a plain file whose parts are told by the pieces of an upload."""
    name, _, rest = locator.partition(TREE)
    stamp, _, path = rest.partition(":")
    return f"{name}{TREE}{stamp}+{upload:x}:{path}"


class Bucket(NamedTuple):
    """A bucket. `id` is never used again for another one, whatever its name."""

    id: int
    name: str
    owner_id: str
    region: str
    created: int
    store: str = "default"
    """Where what is written goes."""
    source: str = ""
    """The store that older data is being moved from."""
    moved: int = 0
    """The number of the commit sequence at which it last began or ended to be moved, 0 when never."""
    settings: str = ""
    """What was configured of it: a JSON object by name of the setting; empty when nothing ever was."""
    versioning: int = 0
    """0 while it never kept versions; then see `ENABLED` and `SUSPENDED` in the schema."""


class Version(NamedTuple):
    """One version of an object. `seq` is the commit sequence, unique in the store: it names the row and orders it."""

    seq: int
    key: str
    version_id: str
    size: int
    etag: str
    """Without quotes."""
    modified: int
    headers: str
    """A JSON object: the answer headers that the object keeps (`content-type`, `x-amz-meta-…`), names in lower case."""
    storage_class: str
    checksum_algorithm: str
    """`CRC32`, `SHA256` and so on, as `x-amz-checksum-algorithm` names it, or empty."""
    checksum_type: str
    """`FULL_OBJECT`, `COMPOSITE` or empty."""
    checksum: str
    """Base64, with `-N` behind it when composite."""
    body: str
    """A locator, or `PIECES` and a number, or empty for an object of 0 bytes."""
    parts: int
    """Number of parts of a multipart object, 0 for others."""
    owner_id: str

    @property
    def is_marker(self) -> bool:
        """It is a delete marker, and so no object: every object has an ETag."""
        return not self.etag


class NewVersion(NamedTuple):
    """What PUT, Copy and Complete give the index; the index adds sequence, version id and time."""

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
    """What a listing shows of a current object; all of it is in the covering index.

    Not its owner, who is the bucket's: 64 bytes a row that no listing shows.
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
    """The entries as plain tuples: naming the fields of a thousand costs as much as showing some hundred."""
    prefixes: list[str]
    truncated: bool
    last: str
    """The last key or common prefix of the page, from which the next page goes on; empty for an empty page."""
    headers: Sequence[str] = ()
    """The headers of each entry, if they were asked for."""

    @property
    def entries(self) -> list[ListedVersion]:
        """The rows with names for their fields."""
        return list(map(ListedVersion._make, self.rows))


class Upload(NamedTuple):
    """A multipart upload. `id` is the number behind the public `upload_id`."""

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
    """The sequence of the version that Complete made, 0 while the upload is open."""
    completed_version_id: str = ""


class Extent(NamedTuple):
    """`size` bytes at `offset` of the blob at `locator`."""

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
    """A run of bytes of a completed multipart object: `size` bytes at `start` of the object."""

    start: int
    size: int
    part_number: int
    locator: str
    offset: int
    """Where the run starts in its blob."""


class ObjectPart(NamedTuple):
    """A part of a completed multipart object, as GetObjectAttributes and `partNumber` show it."""

    number: int
    start: int
    size: int
    checksum: str


class CommitResult(NamedTuple):
    """What a commit answers: the new version, or for a delete what it removed."""

    seq: int
    version_id: str
    modified: int


class Conditions(NamedTuple):
    """Conditions of a write, decided inside its transaction. ETags without quotes."""

    if_match: str | None = None
    """An ETag, or `*` for "exists"."""
    if_none_match: bool = False
    """True for `If-None-Match: *`."""
    if_match_size: int | None = None
    if_match_modified: int | None = None
    """Milliseconds; compared by whole seconds."""


class QueuedDiscard(NamedTuple):
    """A body that no row holds any more, waiting until nobody can be reading it."""

    id: int
    body: str
    queued: int
    """CLOCK_BOOTTIME in milliseconds is kept by the requests; this is wall time, for people. Below 0 for what fsck put
    into quarantine: the time before which it stays, negated."""

    @property
    def quarantined_until_ms(self) -> int:
        """Milliseconds since the epoch before which it is not taken away; 0 where there is no such time."""
        return max(-self.queued, 0)


class Pack(NamedTuple):
    """A file of many small blobs, written by one incarnation."""

    id: int
    incarnation: int
    sealed: int
    """0 while it is written; then see `SEALED`, `RETIRED` and `SWEPT` in the schema."""
    size: int
    """Bytes; 0 until it is sealed."""
    dead: int
    """Bytes of records that no row holds."""
    store: str = "default"


class Journal(NamedTuple):
    """A file beside the data that says what the index decided."""

    id: int
    snapshot: int
    """0: changes; 1: a snapshot that is not whole; 2: one that is."""
    bytes: int
    rows: int
    store: str = "default"


class ReferenceHint(NamedTuple):
    """A record of a pack, and where its claim says that its holder is: an object's key, or a part of an upload."""

    locator: str
    bucket_id: int
    key: str
    upload: int
    """0 for an object's."""
    part: int
    at: int = 0
    """Milliseconds: when it was written, shortly before its version was made; 0 when the claim tells another time."""


class BlobReference(NamedTuple):
    """A row that holds a blob: `version` (seq), `part` (upload, number) or `piece` (upload, start, part number)."""

    kind: str
    first: int
    second: int = 0
    third: int = 0


class RecordMove(NamedTuple):
    """A record that was written again elsewhere, and all rows that held it at its old place."""

    old: str
    new: str
    old_pack: int
    new_pack: int
    total: int
    """Bytes of the record, at either place."""
    holders: tuple[BlobReference, ...]


class ReferenceSwap(NamedTuple):
    """A row that is to hold a copy instead of a body."""

    holder: BlobReference
    old: str
    new: str
    twin: BlobReference | None = None
    """A row that holds the copy already; None when none does."""


class PackReferences(NamedTuple):
    """What a look at all rows found of some packs."""

    holders: dict[str, tuple[BlobReference, ...]]
    """All holders of a record, by its locator."""
    others: frozenset[str]
    """Locators in the discard queue, and those whose holders were not all found."""
    written: frozenset[int]
    """Packs whose writer lives: a commit that names one of their records may still be on its way."""
    complete: bool
    """All holders were found, not only the first ones."""


class Writer(NamedTuple):
    """A writer incarnation: one life of one worker process."""

    incarnation: int
    state: str
    """`live` or `dead`."""
    lock_name: str
    """The file in the run directory that the process holds locked while it lives."""


class IdRange(NamedTuple):
    """Blob ids `first` to `last` (inclusive) reserved by a writer incarnation."""

    incarnation: int
    first: int
    last: int


class Intent(NamedTuple):
    """What is being done to the plain file of a key, and so locks the key: replayed or undone when its writer dies."""

    id: int
    incarnation: int
    bucket_id: int
    key: str
    kind: str
    """`put`, `complete` or `delete`."""
    body: str
    """What the key's body will be; of a delete: what it was."""
    blob_id: int
    """Of the file that was written aside; 0 for a delete."""
    upload: int
    """Of a complete, else 0."""
    new: str
    """JSON: the fields of the new version; empty for a delete."""
    parts: str
    """JSON: number, size and checksum of each part of a complete; else empty."""


class ExternalFile(NamedTuple):
    """A plain file that the index does not know as it is: it was made or changed by others."""

    key: str
    seen: int
    """Sequence of the key's current version when the file was looked at, 0 when there was none."""
    size: int
    etag: str
    headers: str
    body: str
    modified: int


class PendingHash(NamedTuple):
    """A current version whose ETag stands for one that is not known yet."""

    seq: int
    bucket_id: int
    key: str
    size: int
    body: str


def extents_of(body: str, size: int) -> tuple[Extent, ...]:
    """The extents of a body that is one blob."""
    return (Extent(body, 0, size),) if size else ()
