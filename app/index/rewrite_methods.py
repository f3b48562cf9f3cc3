"""The methods of `app.index.rewrites.Rewrites`, the same for every engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from app.index.rewrites import Appended, Rename
from app.index.rows import Committed, Conditions, NewVersion, Version
from app.index.steps import Transaction
from app.index.telling import told
from app.index.transactions import rewriting

T = TypeVar("T")


class RewriteMethods:
    """A part of `app.index.methods.Methods`."""

    async def _commit(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        raise NotImplementedError

    async def rename_object(self, bucket_id: int, rename: Rename) -> Committed | None:
        return await self._commit(told(rewriting.rename_object), bucket_id, rename)

    async def forget_renames(self, before: int) -> None:
        await self._commit(rewriting.forget_renames, before)

    async def append(
        self, bucket_id: int, key: str, found: Version, new: NewVersion, more: Appended, conditions: Conditions | None
    ) -> Committed:
        return await self._commit(told(rewriting.append), bucket_id, key, found, new, more, conditions)
