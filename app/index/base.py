"""The index seam: rows, and the transactions that change them.

Reads never see an uncommitted row and never span two calls. Every change is one transaction that checks that the
writer incarnation it runs for is still live. Methods raise `app.errors.DomainError` and nothing of the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from app.index.deliveries import Deliveries
from app.index.gateways import Gateways
from app.index.identities import Identities
from app.index.lifecycles import Lifecycles
from app.index.rewrites import Rewrites
from app.index.rows import (
    AccessKey,
    Account,
    Bucket,
    Committed,
    Conditions,
    Extent,
    NewVersion,
    ObjectPart,
    Page,
    Part,
    Piece,
    Upload,
    Version,
)
from app.index.schema import DEFAULT
from app.index.trees import Trees
from app.index.upkeep import Upkeep
from app.index.version_rows import Deleted, VersionsPage


class Deletion(NamedTuple):
    """One entry of DeleteObjects."""

    key: str
    version_id: str | None
    conditions: Conditions
    bypass: bool = False
    """Remove it also when a retention of GOVERNANCE keeps it."""


Done = Committed | Deleted | Exception | None
"""What became of an entry of DeleteObjects."""


class Chained(Protocol):
    """A change that waits for its blob, so that it need not come back to the event loop between the two.

    Exactly one of `proceed` and `fail` is called once, in any thread; then `future` ends like an await of the change
    itself would. `abandon` gives up what has not begun to run. It is given up also when the blob and the queue together
    take longer than a commit may.
    """

    @property
    def future(self) -> asyncio.Future[Committed]: ...

    def proceed(self, locator: str) -> None:
        """The blob is durable."""
        ...

    def fail(self, error: Exception) -> None:
        """There is no blob: `future` raises `error`."""
        ...

    def abandon(self) -> bool:
        """Nobody waits any more. True when it is certain that nothing is or will be committed."""
        ...


class Index(Upkeep, Trees, Gateways, Lifecycles, Rewrites, Deliveries, Identities, Protocol):
    """What the store and the accounts ask of the index."""

    @property
    def generation(self) -> int:
        """Bumped by every change of a key, a bucket or a setting, in any process; read without a system call."""
        ...

    @property
    def wal_bytes(self) -> int:
        """Size of the write-ahead log now, for metrics; 0 where there is none."""
        ...

    # life
    async def start(self, *, migrate: bool = False) -> None:
        """Open and register this writer incarnation; `migrate` may make or upgrade the index first.

        Raises StoreUnavailable when the index is not there, is of another revision, or is on a network filesystem.
        """
        ...

    async def close(self) -> None:
        """Finish queued commits; forget this incarnation unless a range of its ids is left for the sweep."""
        ...

    # identity
    async def identities(self) -> dict[str, tuple[str, int]]:
        """The UUID and generation of each store that this index was used with, by the store's name."""
        ...

    async def set_identity(self, store: str, generation: int, name: str = DEFAULT) -> None: ...

    # without an await, for answers that are given before there is a task (DESIGN §6, the fast lane)
    at_once: bool
    """False for an engine that raises NotNow for each of these: it need not be asked."""

    def access_key_now(self, access_key: str) -> AccessKey | None:
        """Like `access_key`. Raises NotNow where an engine would have to wait."""
        ...

    def bucket_now(self, name: str) -> Bucket | None:
        """Like `bucket`. Raises NotNow."""
        ...

    def version_now(self, bucket_id: int, key: str) -> Version | None:
        """The current object of a key. Raises NotNow."""
        ...

    # accounts and keys
    async def access_key(self, access_key: str) -> AccessKey | None: ...
    async def account(self, account_id: str) -> Account | None: ...
    async def accounts(self) -> list[tuple[Account, list[AccessKey]]]: ...
    async def add_account(self, account: Account, access_key: str, secret: str) -> None:
        """Add an account with its first key, or a key to an account of that id. Raises AccountExists."""
        ...

    async def replace_keys(self, account: Account, access_key: str, secret: str) -> None:
        """Make the account if it is missing, and give it exactly this one key. Raises AccountExists."""
        ...

    async def remove_account(self, account_id: str) -> None: ...
    async def set_disabled(self, account_id: str, disabled: bool) -> None: ...

    # buckets
    async def bucket(self, name: str) -> Bucket | None: ...
    async def buckets(self, owner_id: str, prefix: str, after: str, limit: int) -> list[Bucket]:
        """Buckets of an owner whose names start with `prefix` and are greater than `after`, in order."""
        ...

    async def create_bucket(
        self,
        name: str,
        owner_id: str,
        region: str,
        maximum: int,
        store: str = DEFAULT,
        settings: str = "",
        versioning: int = 0,
    ) -> Bucket:
        """Raises BucketAlreadyExists, BucketAlreadyOwnedByYou or TooManyBuckets (over `maximum` for the owner)."""
        ...

    async def configure_bucket(self, bucket_id: int, name: str, value: Any) -> None:
        """Set one of the bucket's settings to a JSON value, or forget it when that is None. Raises NoSuchBucket.

        `value` may be a function that makes it of the value that is there; it may be called more than once.
        """
        ...

    async def set_versioning(self, bucket_id: int, versioning: int) -> None:
        """Enable or suspend versioning; see the schema. Raises NoSuchBucket, and InvalidBucketState for suspending it
        where there is object lock."""
        ...

    async def set_object_lock(self, bucket_id: int, default: Sequence[object]) -> None:
        """Enable object lock for good, with that default retention; see `locks.SETTING`. Raises NoSuchBucket, and
        InvalidBucketState unless versions are kept."""
        ...

    async def stores_in_use(self) -> dict[str, int]:
        """How many buckets have data on which store."""
        ...

    async def delete_bucket(self, bucket_id: int) -> None:
        """Raises NoSuchBucket or BucketNotEmpty (a version is left); open uploads are aborted."""
        ...

    # objects
    async def version(self, bucket_id: int, key: str, version_id: str | None = None) -> Version | None:
        """The current object of a key, or the version of that id, which may be a delete marker."""
        ...

    async def current_marker(self, bucket_id: int, key: str) -> Version | None:
        """The delete marker that is the newest version of a key."""
        ...

    async def list_versions(
        self,
        bucket_id: int,
        prefix: str,
        delimiter: str,
        key_marker: str,
        version_id: str,
        limit: int,
        *,
        headers: bool = False,
    ) -> VersionsPage:
        """A page of all versions, those of a key the newest first, behind that version of `key_marker`.

        Without `version_id` behind all of that key. Prefixes and `headers` are as in `list_current`.
        """
        ...

    async def list_current(
        self, bucket_id: int, prefix: str, delimiter: str, after: str, limit: int, *, headers: bool = False
    ) -> Page:
        """A page of current objects in UTF-8 byte order with keys (and common prefixes) greater than `after`.

        A common prefix counts as one entry, is found by seeking past it, and is not shown when it is not greater
        than `after` or when `after` itself lies under it (then the page goes on behind the whole prefix if `after`
        equals or starts with it).
        """
        ...

    async def put_version(
        self, bucket_id: int, key: str, new: NewVersion, conditions: Conditions | None = None
    ) -> Committed:
        """Make `new` the current version. Raises NoSuchBucket, PreconditionFailed, NoSuchKey (If-Match on no key).

        What it replaces goes to the discard queue in the same transaction; where versions are kept, it becomes an
        older version. Conditions look at the current object, and a delete marker is none.
        """
        ...

    def begin_put(
        self, bucket_id: int, key: str, describe: Callable[[str], NewVersion], conditions: Conditions | None = None
    ) -> Chained:
        """`put_version` of a blob that is being written; `describe` gives the version for its locator."""
        ...

    async def copy_version(
        self, source_seq: int, bucket_id: int, key: str, new: NewVersion, conditions: Conditions | None = None
    ) -> Committed:
        """Like `put_version`, where `new.body` is the body of the version `source_seq`, which is counted up.

        Raises SourceGone when that version is gone by now. The source may be the key itself.
        """
        ...

    async def set_headers(self, bucket_id: int, key: str, seq: int, headers: str, bypass: bool = False) -> int:
        """Give the version `seq` of a key other headers; it gets another `seq`, the answer, but is not modified.

        Raises ConditionalRequestConflict when there is no such version any more, and ObjectLocked for an earlier end
        of its retention; with `bypass` only when that is of COMPLIANCE.
        """
        ...

    async def delete_version(
        self,
        bucket_id: int,
        key: str,
        version_id: str | None = None,
        conditions: Conditions | None = None,
        bypass: bool = False,
    ) -> Committed | Deleted | None:
        """Delete a key's object. None when there was none (which is no error without a condition).

        Where versions are kept, it makes a delete marker, or with `version_id` removes that version (None: there is
        none). Raises NoSuchKey for If-Match on a missing key, PreconditionFailed, and ObjectLocked for a version that
        its legal hold or its retention keeps; `bypass` passes a retention of GOVERNANCE.
        """
        ...

    def begin_delete(
        self,
        bucket_id: int,
        key: str,
        version_id: str | None = None,
        conditions: Conditions | None = None,
        bypass: bool = False,
    ) -> asyncio.Future[Committed | Deleted | None]:
        """`delete_version` without an await. Raises NotNow where the engine cannot."""
        ...

    async def delete_versions(self, bucket_id: int, entries: Sequence[Deletion]) -> list[Done]:
        """DeleteObjects: each entry answered alone, all in one transaction."""
        ...

    # multipart
    async def create_upload(
        self,
        bucket_id: int,
        key: str,
        headers: str,
        storage_class: str,
        checksum_algorithm: str,
        checksum_type: str,
        owner_id: str,
    ) -> Upload: ...

    async def upload(self, bucket_id: int, key: str, upload_id: str) -> Upload | None:
        """The open or completed upload of that id for that key."""
        ...

    async def uploads(
        self, bucket_id: int, prefix: str, delimiter: str, after_key: str, after_upload_id: str, limit: int
    ) -> tuple[list[Upload], list[str], bool]:
        """Open uploads in order of key, then of initiation; with common prefixes, and whether there are more."""
        ...

    async def put_part(self, upload: Upload, part: Part) -> Committed:
        """Add or replace a part; `part.modified` is set by the index. Raises NoSuchUpload when it is not open.

        Locators in `part.extents` that another row holds already must be given by `copy_part` instead.
        """
        ...

    def begin_part(self, upload: Upload, describe: Callable[[str], Part]) -> Chained:
        """`put_part` of a blob that is being written."""
        ...

    async def copy_part(self, source_seq: int, upload: Upload, part: Part) -> Committed:
        """Like `put_part` for extents of the version `source_seq`, whose blobs are counted up.

        Raises SourceGone when that version is gone by now.
        """
        ...

    async def parts(self, upload: Upload, after: int, limit: int) -> list[Part]:
        """Parts of an open upload with numbers greater than `after`."""
        ...

    async def complete_upload(
        self,
        upload: Upload,
        chosen: Sequence[Part],
        new: NewVersion,
        conditions: Conditions | None = None,
    ) -> Committed:
        """Make the chosen parts the current version of the upload's key; `new.body` is filled in by the index.

        `chosen` are rows that `parts` gave; raises InvalidPart when one was replaced since, NoSuchUpload when the
        upload was aborted; answers the recorded result when it was completed before. Parts not chosen are discarded.
        """
        ...

    async def abort_upload(self, upload: Upload) -> None:
        """Raises NoSuchUpload when it is not open."""
        ...

    async def pieces(self, body: str, offset: int, limit: int) -> list[Piece]:
        """Pieces of a multipart body from the one that holds byte `offset` on, at most `limit`."""
        ...

    async def object_part(self, body: str, number: int) -> ObjectPart | None:
        """One part of a multipart body."""
        ...

    async def object_parts(self, body: str, after: int, limit: int) -> list[ObjectPart]:
        """Parts of a multipart body with numbers greater than `after`."""
        ...


def extents_of(body: str, size: int) -> tuple[Extent, ...]:
    """The extents of a body that is one blob."""
    return (Extent(body, 0, size),) if size else ()
