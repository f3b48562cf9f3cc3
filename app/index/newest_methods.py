"""What fsck asks of the order of versions and sets right, the same for every engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from app.index import newest
from app.index.steps import Transaction

T = TypeVar("T")


class NewestMethods:
    """A part of `app.index.methods.Methods`."""

    async def _commit(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        raise NotImplementedError

    async def mend_newest(self, bucket_id: int, key: str) -> None:
        await self._commit(newest.mend, bucket_id, key)
