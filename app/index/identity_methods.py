"""The methods of `app.index.identities.Identities`, the same for every engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from app.index.identity_rows import Identity, Session, UserKey
from app.index.steps import Transaction
from app.index.transactions import identities

T = TypeVar("T")


class IdentityMethods:
    """A part of `app.index.methods.Methods`."""

    async def _read(self, transaction: Transaction[T]) -> T:
        raise NotImplementedError

    async def _commit(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        raise NotImplementedError

    async def _commit_and_notify(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        raise NotImplementedError

    async def identity(self, account_id: str, kind: str, name: str) -> Identity | None:
        return await self._read(identities.identity(account_id, kind, name))

    async def identity_of_id(self, unique_id: str) -> Identity | None:
        return await self._read(identities.identity_of_id(unique_id))

    async def identities_named(self, kind: str, name: str) -> list[Identity]:
        return await self._read(identities.named(kind, name))

    async def identities_of(self, account_id: str, kind: str, path: str, after: str, limit: int) -> list[Identity]:
        return await self._read(identities.page(account_id, kind, path, after, limit))

    async def count_identities(self, account_id: str, kind: str) -> int:
        return await self._read(identities.count(account_id, kind))

    async def add_identity(self, new: Identity, most: int) -> None:
        await self._commit_and_notify(identities.add, new, most)

    async def change_identity(
        self, account_id: str, kind: str, name: str, change: Callable[[Identity], Identity]
    ) -> Identity:
        return await self._commit_and_notify(identities.change, account_id, kind, name, change)

    async def remove_identity(self, account_id: str, kind: str, name: str, check: Callable[[Identity], None]) -> None:
        await self._commit_and_notify(identities.remove, account_id, kind, name, check)

    async def join_group(self, account_id: str, user: str, group: str, most: int) -> None:
        await self._commit_and_notify(identities.join, account_id, user, group, most)

    async def leave_group(self, account_id: str, user: str, group: str) -> None:
        await self._commit_and_notify(identities.leave, account_id, user, group)

    async def members_of(self, group_id: str) -> list[Identity]:
        return await self._read(identities.members(group_id))

    async def groups_of(self, user_id: str) -> list[Identity]:
        return await self._read(identities.groups_of(user_id))

    async def keys_of(self, account_id: str, whose: str) -> list[UserKey]:
        return await self._read(identities.keys_of(account_id, whose))

    async def add_key(self, account_id: str, whose: str, key: str, secret: str, most: int) -> UserKey:
        return await self._commit_and_notify(identities.add_key, account_id, whose, key, secret, most)

    async def set_key(self, account_id: str, whose: str, key: str, disabled: bool) -> None:
        await self._commit_and_notify(identities.set_key, account_id, whose, key, disabled)

    async def remove_key(self, account_id: str, whose: str, key: str) -> None:
        await self._commit_and_notify(identities.remove_key, account_id, whose, key)

    async def add_session(self, new: Session, most: int) -> None:
        await self._commit(identities.add_session, new, most)
