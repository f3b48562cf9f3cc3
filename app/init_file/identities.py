"""Accounts, users, groups, their policies and keys: by IAM's operations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from sluice_s3.app.access.iam import documents
from sluice_s3.app.access.iam.actions import Call
from sluice_s3.app.access.iam.parameters import Parameters
from sluice_s3.app.access.iam.service import IAM, RUN
from sluice_s3.app.access.iam.users import MAX_KEYS
from sluice_s3.app.index.iam.accounts import OWN
from sluice_s3.app.index.iam.rows import GROUP, USER, UserKey
from sluice_s3.app.index.iam.rows import Account as AccountRow
from sluice_s3.app.index.interface import Index
from sluice_s3.app.init_file.changes import Change, InitError
from sluice_s3.app.init_file.document import Account, Document, Group, Key, User, managed_arn, policy_text

MISSING, DIFFERS = "is missing", "differs"
Owner = Callable[[], Awaitable[str | None]]
"""Returns the id of the user that owns keys, empty for the account itself, None for a user that is missing."""


def account_id_of(name: str, account: Account) -> str:
    """Return the canonical id of an account of the file, the same wherever the file is applied."""
    return account.id or hashlib.sha256(f"account:{name}".encode()).hexdigest()


class Identities:
    """The differences of all accounts."""

    def __init__(self, index: Index, document: Document, directory: Path, root_id: str) -> None:
        self._index = index
        self._document = document
        self._directory = directory
        self._root_id = root_id

    async def changes(self) -> AsyncIterator[Change]:
        """Yield the differences. Raises InitError."""
        async for change in self._members("", self._root_id, self._document.groups, self._document.users):
            yield change
        for name, account in self._document.accounts.items():
            where, account_id = f"accounts.{name}", account_id_of(name, account)
            async for change in self._account(where, name, account_id, account):
                yield change
            async for change in self._members(f"{where}.", account_id, account.groups, account.users):
                yield change

    async def _account(self, where: str, name: str, account_id: str, account: Account) -> AsyncIterator[Change]:
        row = AccountRow(account_id, name, "", bool(account.disabled), 0)

        async def add(key: Key) -> None:
            await self._index.add_account(row, key.access_key, key.secret(self._directory))

        found = await self._index.account(account_id)
        if found is None:
            await self._require_free(where, account.keys[0])
            yield Change(where, MISSING, partial(add, account.keys[0]))
        elif account.disabled not in (None, found.disabled):
            yield Change(
                f"{where}.disabled", DIFFERS, partial(self._index.set_disabled, account_id, bool(account.disabled))
            )

        async def owner() -> str:
            return OWN

        # the first key comes with the account
        known = account.keys if await self._index.account(account_id) else account.keys[1:]
        async for change in self._keys(where, account_id, owner, known, add):
            yield change

    async def _members(
        self, where: str, account_id: str, groups: dict[str, Group], users: dict[str, User]
    ) -> AsyncIterator[Change]:
        for name, group in groups.items():
            async for change in self._identity(f"{where}groups.{name}", account_id, GROUP, name, group):
                yield change
        for name, user in users.items():
            async for change in self._user(f"{where}users.{name}", account_id, name, user):
                yield change

    async def _user(self, where: str, account_id: str, name: str, user: User) -> AsyncIterator[Change]:
        async for change in self._identity(where, account_id, USER, name, user):
            yield change
        found = await self._index.identity(account_id, USER, name)
        joined = {group.folded for group in await self._index.groups_of(found.id)} if found else set()
        for group in user.groups:
            if group.lower() not in joined:
                join = self._run(account_id, "AddUserToGroup", UserName=name, GroupName=group)
                yield Change(f"{where}.groups.{group}", MISSING, join)

        async def owner() -> str | None:
            row = await self._index.identity(account_id, USER, name)
            return None if row is None else row.id

        async def add(key: Key) -> None:
            secret = key.secret(self._directory)
            await self._index.add_key(account_id, await owner() or name, key.access_key, secret, MAX_KEYS)

        async for change in self._keys(where, account_id, owner, user.keys, add):
            yield change

    async def _identity(self, where: str, account_id: str, kind: str, name: str, given: Group) -> AsyncIterator[Change]:
        """Yield what differs of a user or a group itself, and of its policies."""
        title = kind.capitalize()
        named = {f"{title}Name": name}
        found = await self._index.identity(account_id, kind, name)
        if found is None:
            path = {} if given.path is None else {"Path": given.path}
            yield Change(where, MISSING, self._run(account_id, f"Create{title}", **named, **path))
        elif given.path not in (None, found.path):
            change = self._run(account_id, f"Update{title}", **named, NewPath=given.path or "/")
            yield Change(f"{where}.path", DIFFERS, change)
        inline = documents.policies(found) if found else {}
        attached = documents.attached(found) if found else []
        for policy in given.policies:
            place = f"{where}.policies.{policy}"
            if policy in self._document.policies:
                text = policy_text(self._document.policies[policy], self._directory)
                put = self._run(account_id, f"Put{title}Policy", **named, PolicyName=policy, PolicyDocument=text)
                if policy not in inline:
                    yield Change(place, MISSING, put)
                elif json.loads(inline[policy]) != json.loads(text):
                    yield Change(place, DIFFERS, put)
            elif (arn := managed_arn(policy)) is not None and arn not in attached:
                yield Change(place, MISSING, self._run(account_id, f"Attach{title}Policy", **named, PolicyArn=arn))

    async def _keys(
        self, where: str, account_id: str, owner: Owner, keys: list[Key], add: Callable[[Key], Awaitable[None]]
    ) -> AsyncIterator[Change]:
        """Yield what differs of the keys of a user, or of an account."""
        for key in keys:
            place, found = f"{where}.keys.{key.access_key}", await self._key(account_id, owner, key)
            if found is None:
                await self._require_free(place, key)
                yield Change(place, MISSING, partial(add, key))
            row = await self._index.access_key(key.access_key)
            if row is not None and row.secret != key.secret(self._directory):
                yield Change(place, "has another secret", partial(self._renew, key, account_id, owner, add))
            found = await self._key(account_id, owner, key)
            if found is not None and key.disabled not in (None, found.disabled):
                disable = partial(self._index.set_key, account_id, await owner() or OWN, key.access_key, key.disabled)
                yield Change(f"{place}.disabled", DIFFERS, disable)

    async def _key(self, account_id: str, owner: Owner, key: Key) -> UserKey | None:
        owner_id = await owner()
        found = [] if owner_id is None else await self._index.keys_of(account_id, owner_id)
        return next((one for one in found if one.access_key == key.access_key), None)

    async def _renew(self, key: Key, account_id: str, owner: Owner, add: Callable[[Key], Awaitable[None]]) -> None:
        await self._index.remove_key(account_id, await owner() or OWN, key.access_key)
        await add(key)

    async def _require_free(self, where: str, key: Key) -> None:
        if await self._index.access_key(key.access_key) is not None:
            raise InitError(f"{where}: another account or user has the access key {key.access_key}")

    def _run(self, account_id: str, action: str, **parameters: str) -> Callable[[], Awaitable[Any]]:
        return partial(RUN[IAM], action, Call(self._index, account_id, None, Parameters(parameters)))
