"""The methods of `app.index.lifecycles.Lifecycles` that change something, the same for every engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from app.index.lifecycle import Expired
from app.index.restores import Pending, Restore
from app.index.rows import Bucket
from app.index.steps import Transaction
from app.index.telling import told
from app.index.transactions import expiry, restores, transitions
from app.index.transitions import Reclassed

T = TypeVar("T")


class LifecycleMethods:
    """A part of `app.index.methods.Methods`."""

    async def _commit(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        raise NotImplementedError

    async def expire(self, bucket_id: int, settings: str, entries: Sequence[Expired]) -> list[bool] | None:
        return await self._commit(told(expiry.expire), bucket_id, settings, entries)

    async def expire_uploads(self, bucket_id: int, settings: str, numbers: Sequence[int]) -> int | None:
        return await self._commit(expiry.expire_uploads, bucket_id, settings, numbers)

    async def reclass(self, bucket: Bucket, settings: str | None, entries: Sequence[Reclassed]) -> list[int] | None:
        return await self._commit(told(transitions.reclass), bucket, settings, entries)

    async def ask_restore(
        self, bucket_id: int, key: str, version_id: str, seq: int, headers: str, restore: Restore
    ) -> int:
        return await self._commit(told(restores.ask_restore), bucket_id, key, version_id, seq, headers, restore)

    async def look_later(self, pending: Pending, value: str) -> None:
        await self._commit(restores.look_later, pending.name, pending.value, value)
