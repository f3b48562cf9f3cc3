"""The methods of `app.index.trees.Trees`, the same for every engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from app.index.rows import Bucket, Committed, Conditions, Found, Intent, NewVersion, Part, Unhashed, Upload
from app.index.steps import Transaction
from app.index.transactions import intents

T = TypeVar("T")


class TreeMethods:
    """A part of `app.index.methods.Methods`."""

    incarnation = 0

    async def _read(self, transaction: Transaction[T]) -> T:
        raise NotImplementedError

    async def _commit(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        raise NotImplementedError

    async def begin_tree_put(
        self, bucket_id: int, key: str, blob_id: int, new: NewVersion, conditions: Conditions | None
    ) -> Intent:
        return await self._commit(intents.begin_put, self.incarnation, bucket_id, key, blob_id, new, conditions)

    async def begin_tree_complete(
        self, upload: Upload, chosen: Sequence[Part], blob_id: int, new: NewVersion, conditions: Conditions | None
    ) -> Intent | Committed:
        described = (upload, chosen, blob_id, new, conditions)
        return await self._commit(intents.begin_complete, self.incarnation, *described)

    async def begin_tree_delete(
        self, bucket_id: int, key: str, version_id: str | None, conditions: Conditions | None
    ) -> Intent | None:
        return await self._commit(intents.begin_delete, self.incarnation, bucket_id, key, version_id, conditions)

    async def commit_intent(self, number: int) -> Committed | None:
        return await self._commit(intents.commit_intent, number)

    async def drop_intent(self, number: int) -> None:
        await self._commit(intents.drop_intent, number)

    async def intent_on(self, bucket_id: int, key: str) -> Intent | None:
        return await self._read(intents.intent_on(bucket_id, key))

    async def intents_of(self, incarnation: int) -> list[Intent]:
        return await self._read(intents.intents_of(incarnation))

    async def position(self) -> int:
        return await self._read(intents.position())

    async def adopt(self, bucket_id: int, owner_id: str, since: int, found: Sequence[Found]) -> list[int]:
        return await self._commit(intents.adopt, bucket_id, owner_id, since, found)

    async def forget_vanished(self, bucket_id: int, vanished: Sequence[tuple[str, int]]) -> list[bool]:
        return await self._commit(intents.forget_vanished, bucket_id, vanished)

    async def current_after(self, bucket_id: int, after: str, limit: int) -> list[tuple[str, int, str]]:
        return await self._read(intents.current_after(bucket_id, after, limit))

    async def buckets_on(self, store: str) -> list[Bucket]:
        return await self._read(intents.buckets_on(store))

    async def unhashed(self, after: int, limit: int) -> list[Unhashed]:
        return await self._read(intents.unhashed(after, limit))

    async def set_hashes(self, seq: int, body: str, etag: str, algorithm: str, checksum: str) -> bool:
        return await self._commit(intents.set_hashes, seq, body, etag, algorithm, checksum)

    async def forget_unhashed(self, seqs: Sequence[int]) -> None:
        await self._commit(intents.forget_unhashed, seqs)
