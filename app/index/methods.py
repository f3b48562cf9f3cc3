"""The methods of `app.index.base.Index`, the same for every engine: which transaction each one runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from app.errors import NotNow
from app.index import listing
from app.index.base import Chained, Deletion, Done
from app.index.feature_methods import FeatureMethods
from app.index.gateway_methods import GatewayMethods
from app.index.rows import (
    AccessKey,
    Account,
    Bucket,
    Committed,
    Conditions,
    Discard,
    IdRange,
    Journal,
    Move,
    NewVersion,
    ObjectPart,
    Pack,
    Part,
    Piece,
    Swap,
    Upload,
    Version,
    Writer,
)
from app.index.schema import DEFAULT
from app.index.steps import Transaction
from app.index.telling import told
from app.index.transactions import (
    accounts,
    bucket,
    compaction,
    decisions,
    discards,
    moving,
    multipart,
    objects,
    packs,
    versions,
    writers,
)
from app.index.tree_methods import TreeMethods
from app.index.version_rows import Deleted

T = TypeVar("T")


class Methods(TreeMethods, GatewayMethods, FeatureMethods):
    """An engine gives the underscored ones. What each method means stands in `Index`."""

    incarnation = 0
    at_once = True

    async def _read(self, transaction: Transaction[T]) -> T:
        raise NotImplementedError

    async def _read_together(self, transaction: Transaction[T]) -> T:
        """Read all of it in one state of the index."""
        raise NotImplementedError

    async def _commit(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        raise NotImplementedError

    def _submit(self, function: Callable[..., Transaction[T]], *arguments: object) -> asyncio.Future[T]:
        """`_commit` without an await. Raises NotNow where the engine cannot."""
        raise NotNow

    def _begin(
        self, function: Callable[..., Transaction[Committed]], arguments: Callable[[str], tuple[object, ...]]
    ) -> Chained:
        """A change whose arguments are known once its blob is durable."""
        raise NotImplementedError

    async def _commit_and_notify(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        """Commit a change that the caches of every process must see."""
        raise NotImplementedError

    # at once: only an engine that reads in this process can

    def access_key_now(self, access_key: str) -> AccessKey | None:
        raise NotNow

    def bucket_now(self, name: str) -> Bucket | None:
        raise NotNow

    def version_now(self, bucket_id: int, key: str) -> Version | None:
        raise NotNow

    # identity

    async def identities(self) -> dict[str, tuple[str, int]]:
        return await self._read(accounts.identities())

    async def set_identity(self, store: str, generation: int, name: str = DEFAULT) -> None:
        await self._commit(accounts.set_identity, store, generation, name)

    # accounts and keys

    async def access_key(self, access_key: str) -> AccessKey | None:
        return await self._read(accounts.access_key(access_key))

    async def account(self, account_id: str) -> Account | None:
        return await self._read(accounts.account(account_id))

    async def accounts(self) -> list[tuple[Account, list[AccessKey]]]:
        return await self._read_together(accounts.accounts())

    async def add_account(self, account: Account, access_key: str, secret: str) -> None:
        await self._commit_and_notify(accounts.add_account, account, access_key, secret)

    async def replace_keys(self, account: Account, access_key: str, secret: str) -> None:
        await self._commit_and_notify(accounts.replace_keys, account, access_key, secret)

    async def remove_account(self, account_id: str) -> None:
        await self._commit_and_notify(accounts.remove_account, account_id)

    async def set_disabled(self, account_id: str, disabled: bool) -> None:
        await self._commit_and_notify(accounts.set_disabled, account_id, disabled)

    # buckets

    async def bucket(self, name: str) -> Bucket | None:
        return await self._read(bucket.bucket(name))

    async def buckets(self, owner_id: str, prefix: str, after: str, limit: int) -> list[Bucket]:
        return await self._read(bucket.buckets(owner_id, prefix, after, limit))

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
        described = (name, owner_id, region, maximum, store, settings, versioning)
        return await self._commit_and_notify(bucket.create_bucket, *described)

    async def configure_bucket(self, bucket_id: int, name: str, value: Any) -> None:
        await self._commit_and_notify(bucket.configure_bucket, bucket_id, name, value)

    async def set_versioning(self, bucket_id: int, versioning: int) -> None:
        await self._commit_and_notify(versions.set_versioning, bucket_id, versioning)

    async def set_object_lock(self, bucket_id: int, default: Sequence[object]) -> None:
        await self._commit_and_notify(versions.set_object_lock, bucket_id, default)

    async def stores_in_use(self) -> dict[str, int]:
        return await self._read(bucket.stores_in_use())

    async def delete_bucket(self, bucket_id: int) -> None:
        await self._commit_and_notify(bucket.delete_bucket, bucket_id)

    # objects

    async def version(self, bucket_id: int, key: str, version_id: str | None = None) -> Version | None:
        return await self._read(objects.version(bucket_id, key, version_id))

    async def current_marker(self, bucket_id: int, key: str) -> Version | None:
        return await self._read(versions.current_marker(bucket_id, key))

    async def put_version(
        self, bucket_id: int, key: str, new: NewVersion, conditions: Conditions | None = None
    ) -> Committed:
        return await self._commit(told(objects.put_version), bucket_id, key, new, conditions)

    def begin_put(
        self, bucket_id: int, key: str, describe: Callable[[str], NewVersion], conditions: Conditions | None = None
    ) -> Chained:
        return self._begin(told(objects.put_version), lambda locator: (bucket_id, key, describe(locator), conditions))

    async def copy_version(
        self, source_seq: int, bucket_id: int, key: str, new: NewVersion, conditions: Conditions | None = None
    ) -> Committed:
        return await self._commit(told(objects.copy_version), source_seq, bucket_id, key, new, conditions)

    async def set_headers(self, bucket_id: int, key: str, seq: int, headers: str, bypass: bool = False) -> int:
        return await self._commit(told(objects.set_headers), bucket_id, key, seq, headers, bypass)

    async def delete_version(
        self,
        bucket_id: int,
        key: str,
        version_id: str | None = None,
        conditions: Conditions | None = None,
        bypass: bool = False,
    ) -> Committed | Deleted | None:
        return await self._commit(told(objects.delete_version), bucket_id, key, version_id, conditions, bypass)

    def begin_delete(
        self,
        bucket_id: int,
        key: str,
        version_id: str | None = None,
        conditions: Conditions | None = None,
        bypass: bool = False,
    ) -> asyncio.Future[Committed | Deleted | None]:
        return self._submit(told(objects.delete_version), bucket_id, key, version_id, conditions, bypass)

    async def delete_versions(self, bucket_id: int, entries: Sequence[Deletion]) -> list[Done]:
        return await self._commit(told(objects.delete_versions), bucket_id, entries)

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
    ) -> Upload:
        described = (headers, storage_class, checksum_algorithm, checksum_type, owner_id)
        return await self._commit(multipart.create_upload, bucket_id, key, *described)

    async def upload(self, bucket_id: int, key: str, upload_id: str) -> Upload | None:
        return await self._read(multipart.upload(bucket_id, key, upload_id))

    async def uploads(
        self, bucket_id: int, prefix: str, delimiter: str, after_key: str, after_upload_id: str, limit: int
    ) -> tuple[list[Upload], list[str], bool]:
        number = multipart.number_of(after_upload_id) if after_upload_id else None
        return await self._read_together(listing.uploads(bucket_id, prefix, delimiter, after_key, number, limit))

    async def put_part(self, upload: Upload, part: Part) -> Committed:
        return await self._commit(multipart.put_part, upload, part)

    def begin_part(self, upload: Upload, describe: Callable[[str], Part]) -> Chained:
        return self._begin(multipart.put_part, lambda locator: (upload, describe(locator)))

    async def copy_part(self, source_seq: int, upload: Upload, part: Part) -> Committed:
        return await self._commit(multipart.copy_part, source_seq, upload, part)

    async def parts(self, upload: Upload, after: int, limit: int) -> list[Part]:
        return await self._read(multipart.parts(upload, after, limit))

    async def complete_upload(
        self, upload: Upload, chosen: Sequence[Part], new: NewVersion, conditions: Conditions | None = None
    ) -> Committed:
        return await self._commit(told(multipart.complete_upload), upload, chosen, new, conditions)

    async def abort_upload(self, upload: Upload) -> None:
        await self._commit(multipart.abort_upload, upload)

    async def pieces(self, body: str, offset: int, limit: int) -> list[Piece]:
        return await self._read(multipart.pieces(body, offset, limit))

    async def object_part(self, body: str, number: int) -> ObjectPart | None:
        return await self._read(multipart.object_part(body, number))

    async def object_parts(self, body: str, after: int, limit: int) -> list[ObjectPart]:
        return await self._read(multipart.object_parts(body, after, limit))

    # writers and what they leave

    async def reserve_ids(self, count: int) -> IdRange:
        return await self._commit(writers.reserve_ids, self.incarnation, count)

    async def retire_range(self, ids: IdRange) -> None:
        await self._commit(writers.retire_range, ids)

    async def writers(self) -> list[Writer]:
        return await self._read(writers.writers())

    async def declare_dead(self, incarnation: int) -> None:
        await self._commit(writers.declare_dead, incarnation)

    async def ranges(self, incarnation: int) -> list[IdRange]:
        return await self._read(writers.ranges(incarnation))

    # discards

    async def discards(self, after: int, limit: int) -> list[Discard]:
        return await self._read(discards.discards(after, limit))

    async def expand_discard(self, discard: Discard, limit: int) -> bool:
        return await self._commit(multipart.expand_discard, discard, limit)

    async def forget_discards(self, gone: Sequence[tuple[int, int, int]]) -> None:
        await self._commit(discards.forget_discards, gone)

    # packs

    async def open_pack(self, store: str = DEFAULT) -> int:
        return await self._commit(packs.open_pack, self.incarnation, store)

    async def seal_pack(self, pack_id: int, size: int, *, swept: bool = False) -> None:
        await self._commit(packs.seal_pack, pack_id, size, swept)

    async def packs_of(self, incarnation: int) -> list[Pack]:
        return await self._read(packs.packs_of(incarnation))

    async def packs(self) -> list[Pack]:
        return await self._read(packs.all_packs())

    async def count_dead(self, dead: Sequence[tuple[int, int]]) -> None:
        await self._commit(packs.add_dead, dead)

    async def correct_dead(self, pack_id: int, seen: int, true: int) -> bool:
        return await self._commit(packs.correct_dead, pack_id, seen, true)

    async def retire_pack(self, pack_id: int, overhead: int, locator: str) -> bool:
        return await self._commit(packs.retire_pack, pack_id, overhead, locator)

    async def move_records(self, moves: Sequence[Move]) -> list[bool]:
        return await self._commit(compaction.move_records, moves)

    async def refuse_blobs(self, refused: Sequence[tuple[str, int, int]], store: str = DEFAULT) -> None:
        await self._commit(packs.refuse_blobs, refused, store)

    async def forget_pack(self, pack_id: int) -> None:
        await self._commit(packs.forget_pack, pack_id)

    # what is written down beside the data

    async def watermark(self, store: str = DEFAULT) -> int:
        return await self._read(decisions.watermark(store))

    async def open_journal(self, snapshot: int, store: str = DEFAULT) -> int:
        return await self._commit(decisions.open_journal, self.incarnation, snapshot, store)

    async def journals(self, store: str = DEFAULT) -> list[Journal]:
        return await self._read(decisions.journals(store))

    async def decided(self, journal: Journal, until: int, settled: int) -> None:
        await self._commit(decisions.decided, journal, until, settled)

    async def set_journal(self, journal: Journal) -> None:
        await self._commit(decisions.set_journal, journal)

    async def forget_journals(self, ids: Sequence[int]) -> None:
        await self._commit(decisions.forget_journals, ids)

    # blobs that were found damaged

    async def quarantine(self) -> list[tuple[str, str, int]]:
        return await self._read(decisions.quarantine())

    async def add_quarantine(self, locator: str, reason: str) -> None:
        await self._commit_and_notify(decisions.add_quarantine, locator, reason)

    async def remove_quarantine(self, locators: Sequence[str]) -> None:
        await self._commit_and_notify(decisions.remove_quarantine, locators)

    # buckets on their way to another store

    async def begin_move(self, name: str, store: str) -> Bucket:
        return await self._commit_and_notify(moving.begin_move, name, store)

    async def end_move(self, bucket: Bucket) -> bool:
        return await self._commit_and_notify(moving.end_move, bucket)

    async def moving(self) -> list[Bucket]:
        return await self._read(moving.moving())

    async def snapshot_is_due(self, store: str, told: int) -> bool:
        return await self._read_together(moving.snapshot_is_due(store, told))

    async def ever_moved(self) -> bool:
        return await self._read(moving.ever_moved())

    async def swap(self, swaps: Sequence[Swap]) -> list[bool]:
        return await self._commit(moving.swap, swaps)

    async def split(self, seq: int, bucket_id: int, key: str, old: str, places: dict[str, str]) -> str | None:
        return await self._commit(moving.split, seq, bucket_id, key, old, places)

    # notes of jobs

    async def note(self, name: str) -> str:
        return await self._read(decisions.note(name))

    async def set_note(self, name: str, value: str) -> None:
        await self._commit(decisions.set_note, name, value)
