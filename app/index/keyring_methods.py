"""The change of the key ring that `app.index.upkeep.Upkeep` names, the same for every engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from app.index.steps import Transaction
from app.index.transactions import decisions

T = TypeVar("T")


class KeyringMethods:
    """A part of `app.index.methods.Methods`."""

    async def _commit_and_notify(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        raise NotImplementedError

    async def change_keyring(self, old: str, new: str) -> None:
        """See `app.index.upkeep.Upkeep`."""
        await self._commit_and_notify(decisions.change_keyring, old, new)
