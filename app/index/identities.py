"""Users, groups, roles and sessions: a part of the index seam.

Names are those of the account's users, groups or roles (`kind`) in whatever case; `whose` is the id of a user, empty
for the account itself. All raise `app.errors.DomainError` only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from app.index.identity_rows import Identity, Session, UserKey


class Identities(Protocol):
    """A part of `app.index.base.Index`."""

    async def identity(self, account_id: str, kind: str, name: str) -> Identity | None: ...
    async def identity_of_id(self, unique_id: str) -> Identity | None:
        """That of an id, in whatever account."""
        ...

    async def identities_named(self, kind: str, name: str) -> list[Identity]:
        """Those of a name in all accounts."""
        ...

    async def identities_of(self, account_id: str, kind: str, path: str, after: str, limit: int) -> list[Identity]:
        """Those whose paths begin so, in the order of their names, behind the folded name `after`."""
        ...

    async def count_identities(self, account_id: str, kind: str) -> int: ...
    async def add_identity(self, new: Identity, most: int) -> None:
        """Raises IdentityExists, TooManyIdentities when the account has `most` of the kind."""
        ...

    async def change_identity(
        self, account_id: str, kind: str, name: str, change: Callable[[Identity], Identity]
    ) -> Identity:
        """Make one what a function makes of it, which may raise domain errors and be called more than once.

        Raises NoSuchIdentity, IdentityExists.
        """
        ...

    async def remove_identity(self, account_id: str, kind: str, name: str, check: Callable[[Identity], None]) -> None:
        """Raises NoSuchIdentity, IdentityInUse while it has keys, groups or members, and what `check` raises."""
        ...

    async def join_group(self, account_id: str, user: str, group: str, most: int) -> None:
        """Raises NoSuchIdentity, TooManyIdentities."""
        ...

    async def leave_group(self, account_id: str, user: str, group: str) -> None:
        """Raises NoSuchIdentity."""
        ...

    async def members_of(self, group_id: str) -> list[Identity]: ...
    async def groups_of(self, user_id: str) -> list[Identity]: ...
    async def keys_of(self, account_id: str, whose: str) -> list[UserKey]: ...
    async def add_key(self, account_id: str, whose: str, key: str, secret: str, most: int) -> UserKey:
        """Raises NoSuchIdentity, TooManyIdentities when there are `most`, AccountExists for a key that is taken."""
        ...

    async def set_key(self, account_id: str, whose: str, key: str, disabled: bool) -> None:
        """Raises NoSuchIdentity."""
        ...

    async def remove_key(self, account_id: str, whose: str, key: str) -> None:
        """Raises NoSuchIdentity."""
        ...

    async def add_session(self, new: Session, most: int) -> None:
        """Caches need not hear of it: what is not there is never remembered. Raises TooManyIdentities."""
        ...
