"""The methods of `app.index.deliveries.Deliveries`, the same for every engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from app.index.deliveries import Backlog, Lines, Message, NewMessage, Waiting
from app.index.rows import Bucket
from app.index.steps import Transaction
from app.index.transactions import deliveries

T = TypeVar("T")


class DeliveryMethods:
    """A part of `app.index.methods.Methods`."""

    async def _read(self, transaction: Transaction[T]) -> T:
        raise NotImplementedError

    async def _commit(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        raise NotImplementedError

    async def _commit_and_notify(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        raise NotImplementedError

    async def configure_messages(self, bucket_id: int, name: str, value: Any, messages: Sequence[NewMessage]) -> None:
        await self._commit_and_notify(deliveries.configure_messages, bucket_id, name, value, messages)

    async def configured_buckets(self, mark: str) -> list[Bucket]:
        return await self._read(deliveries.configured_buckets(mark))

    async def messages(self, target: str, limit: int) -> list[Message]:
        return await self._read(deliveries.messages(target, limit))

    async def forget_messages(self, ids: Sequence[int]) -> None:
        await self._commit(deliveries.forget_messages, ids)

    async def backlog(self) -> list[Backlog]:
        return await self._read(deliveries.backlog())

    async def add_log_lines(self, collected: Sequence[tuple[int, str, str]]) -> None:
        await self._commit(deliveries.add_log_lines, collected)

    async def waiting_logs(self) -> list[Waiting]:
        return await self._read(deliveries.waiting_logs())

    async def log_lines(self, bucket_id: int, limit: int) -> list[Lines]:
        return await self._read(deliveries.log_lines(bucket_id, limit))

    async def forget_log_lines(self, ids: Sequence[int]) -> None:
        await self._commit(deliveries.forget_log_lines, ids)
