"""The methods of `app.index.gateways.Gateways`, the same for every engine but for `across`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from app.index.gateways import Lease
from app.index.steps import Transaction
from app.index.transactions import gateways

T = TypeVar("T")


class GatewayMethods:
    """A part of `app.index.methods.Methods`."""

    incarnation = 0
    many_hosts = False

    async def _read(self, transaction: Transaction[T]) -> T:
        raise NotImplementedError

    async def _commit(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        raise NotImplementedError

    def across(self, oldest: Callable[[], int]) -> Callable[[], int]:
        return oldest

    async def take_lease(self, name: str) -> Lease | None:
        # looked at first: those that do not get it ask again every second
        if not await self._read(gateways.is_free(self.incarnation, name)):
            return None
        return await self._commit(gateways.take_lease, self.incarnation, name)

    async def holds_lease(self, lease: Lease) -> bool:
        return await self._read(gateways.holds_lease(lease))

    async def leave_lease(self, lease: Lease) -> None:
        await self._commit(gateways.leave_lease, lease)
