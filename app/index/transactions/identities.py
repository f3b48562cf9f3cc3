"""Users, groups and roles of accounts, access keys of users, and sessions."""

from __future__ import annotations

from collections.abc import Callable

from sluice_s3.app.errors import AccountExists, IdentityExists, IdentityInUse, NoSuchIdentity, TooManyIdentities
from sluice_s3.app.index.identity_rows import AccessKey, Identity, KeyOwner, Session, UserKey
from sluice_s3.app.index.identity_statements import (
    ACCESS_KEY,
    ADD,
    ADD_ACCESS_KEY,
    ADD_SESSION,
    BY_ID,
    BY_NAME,
    COUNT,
    COUNT_KEYS,
    COUNT_SESSIONS,
    GROUPS_OF,
    JOIN,
    KEYS_OF,
    LEAVE,
    MEMBERS_OF,
    NAMED,
    PAGE,
    REMOVE,
    REMOVE_ENDED_SESSIONS,
    REMOVE_KEY,
    REMOVE_OLD_SESSIONS,
    REMOVE_SESSIONS_OF,
    SESSION,
    SET,
    SET_KEY,
)
from sluice_s3.app.index.sql.transaction import Transaction, now_ms

KEPT_MS = 86_400_000
"""Milliseconds for which an ended session is kept, so that its key is answered with ExpiredToken."""
BEHIND = "\U0010ffff"
"""A text that sorts after every path."""


def holder(account_id: str, identity: str) -> Transaction[KeyOwner | None]:
    """Return the owner of a key: a user with its groups, or a role.

    Returns None when it no longer exists.
    """
    rows = yield BY_ID, (identity,)
    if not rows:
        return None
    groups = yield GROUPS_OF, (identity,)
    return KeyOwner(account_id, Identity._make(rows[0]), tuple(map(Identity._make, groups)))


def session(access_key: str) -> Transaction[AccessKey | None]:
    """Return a temporary key with its holder.

    Returns None when the key, or its user or role, does not exist.
    """
    rows = yield SESSION, (access_key,)
    if not rows:
        return None
    *fields, display_name, disabled = rows[0]
    found = Session._make(fields)
    who: KeyOwner | None = KeyOwner(found.account_id, None)
    if found.identity:
        who = yield from holder(found.account_id, found.identity)
    if who is None:
        return None
    who = who._replace(session=found.name, policies=found.policies, began=found.created)
    key = AccessKey(access_key, found.secret, found.account_id, display_name, disabled > 0)
    return key._replace(holder=who, token=found.token, expires=found.expires)


# users, groups and roles


def identity(account_id: str, kind: str, name: str) -> Transaction[Identity | None]:
    """Return the identity of that name, compared case-insensitively."""
    rows = yield BY_NAME, (kind, name.lower(), account_id)
    return Identity._make(rows[0]) if rows else None


def identity_of_id(unique_id: str) -> Transaction[Identity | None]:
    """Return an identity by its id, in any account."""
    rows = yield BY_ID, (unique_id,)
    return Identity._make(rows[0]) if rows else None


def named(kind: str, name: str) -> Transaction[list[Identity]]:
    """Return the identities of that name in all accounts."""
    return [Identity._make(row) for row in (yield NAMED, (kind, name.lower()))]


def page(account_id: str, kind: str, path: str, after: str, limit: int) -> Transaction[list[Identity]]:
    """Return identities whose paths start with `path`, ordered by name.

    They follow the folded name `after`.
    """
    return [Identity._make(row) for row in (yield PAGE, (account_id, kind, after, path, path + BEHIND, limit))]


def count(account_id: str, kind: str) -> Transaction[int]:
    """Return how many identities of a kind an account has."""
    rows = yield COUNT, (account_id, kind)
    return int(rows[0][0])


def add(new: Identity, most: int) -> Transaction[None]:
    """Add an identity.

    Raises IdentityExists, TooManyIdentities when the account has `most` of the kind.
    """
    if (yield from identity(new.account_id, new.kind, new.name)):
        raise IdentityExists(kind=new.kind, name=new.name)
    if (yield from count(new.account_id, new.kind)) >= most:
        raise TooManyIdentities(kind=new.kind, most=most)
    yield ADD, tuple(new)


def change(account_id: str, kind: str, name: str, function: Callable[[Identity], Identity]) -> Transaction[Identity]:
    """Replace an identity by the result of a function.

    The function may raise domain errors and may be called more than once. Raises NoSuchIdentity, IdentityExists for a
    new name that is taken.
    """
    found = yield from _present(account_id, kind, name)
    new = function(found)
    new = new._replace(folded=new.name.lower())
    if new.folded != found.folded and (yield from identity(account_id, kind, new.name)):
        raise IdentityExists(kind=kind, name=new.name)
    yield SET, (new.name, new.folded, new.path, new.document, found.id)
    return new


def remove(account_id: str, kind: str, name: str, check: Callable[[Identity], None]) -> Transaction[None]:
    """Remove an identity with its sessions.

    Raises NoSuchIdentity, IdentityInUse while it has keys, groups or members, and what `check` raises.
    """
    found = yield from _present(account_id, kind, name)
    check(found)
    if (yield GROUPS_OF, (found.id,)) or (yield MEMBERS_OF, (found.id,)):
        raise IdentityInUse(what="group")
    if (yield COUNT_KEYS, (account_id, found.id))[0][0]:
        raise IdentityInUse(what="key")
    yield REMOVE_SESSIONS_OF, (found.id,)
    yield REMOVE, (found.id,)


def _present(account_id: str, kind: str, name: str) -> Transaction[Identity]:
    found = yield from identity(account_id, kind, name)
    if found is None:
        raise NoSuchIdentity(kind=kind, name=name)
    return found


# memberships


def join(account_id: str, user: str, group: str, most: int) -> Transaction[None]:
    """Add a user to a group.

    Raises NoSuchIdentity, TooManyIdentities.
    """
    in_group = yield from _present(account_id, "group", group)
    member = yield from _present(account_id, "user", user)
    groups = yield GROUPS_OF, (member.id,)
    if len(groups) >= most and all(row[0] != in_group.id for row in groups):
        raise TooManyIdentities(kind="groups of a user", most=most)
    yield JOIN, (member.id, in_group.id)


def leave(account_id: str, user: str, group: str) -> Transaction[None]:
    """Remove a user from a group.

    Raises NoSuchIdentity, also for a user who is not a member.
    """
    in_group = yield from _present(account_id, "group", group)
    member = yield from _present(account_id, "user", user)
    if all(row[0] != in_group.id for row in (yield GROUPS_OF, (member.id,))):
        raise NoSuchIdentity(kind="user", name=user)
    yield LEAVE, (member.id, in_group.id)


def members(group_id: str) -> Transaction[list[Identity]]:
    """Return the users of a group."""
    return [Identity._make(row) for row in (yield MEMBERS_OF, (group_id,))]


def groups_of(user_id: str) -> Transaction[list[Identity]]:
    """Return the groups of a user."""
    return [Identity._make(row) for row in (yield GROUPS_OF, (user_id,))]


# keys: `identity_id` is the id of a user, empty for the account itself


def keys_of(account_id: str, identity_id: str) -> Transaction[list[UserKey]]:
    """Return the keys of a user or account, oldest first."""
    rows = yield KEYS_OF, (account_id, identity_id)
    return [UserKey(key, disabled > 0, created) for key, disabled, created in rows]


def add_key(account_id: str, identity_id: str, key: str, secret: str, most: int) -> Transaction[UserKey]:
    """Add a key.

    Raises NoSuchIdentity, TooManyIdentities when there are `most`, AccountExists for a key that is taken.
    """
    if identity_id and not (yield BY_ID, (identity_id,)):
        raise NoSuchIdentity(kind="user", name=identity_id)
    if (yield ACCESS_KEY, (key,)):
        raise AccountExists(access_key=key)
    if (yield COUNT_KEYS, (account_id, identity_id))[0][0] >= most:
        raise TooManyIdentities(kind="key", most=most)
    created = now_ms()
    yield ADD_ACCESS_KEY, (key, secret, account_id, 0, created, identity_id)
    return UserKey(key, False, created)


def set_key(account_id: str, identity_id: str, key: str, disabled: bool) -> Transaction[None]:
    """Disable or enable a key.

    Raises NoSuchIdentity.
    """
    yield from _check_key(account_id, identity_id, key)
    yield SET_KEY, (int(disabled), account_id, identity_id, key)


def remove_key(account_id: str, identity_id: str, key: str) -> Transaction[None]:
    """Remove a key.

    Raises NoSuchIdentity.
    """
    yield from _check_key(account_id, identity_id, key)
    yield REMOVE_KEY, (account_id, identity_id, key)


def _check_key(account_id: str, identity_id: str, key: str) -> Transaction[None]:
    if all(row[0] != key for row in (yield KEYS_OF, (account_id, identity_id))):
        raise NoSuchIdentity(kind="key", name=key)


# sessions


def add_session(new: Session, most: int) -> Transaction[None]:
    """Add a temporary key, and remove sessions that ended more than `KEPT_MS` ago.

    Raises TooManyIdentities when its user or role, or the account itself, has `most` active sessions. The limit is per
    holder, so that one holder cannot block others.
    """
    yield REMOVE_OLD_SESSIONS, (new.created - KEPT_MS,)
    holder = (new.account_id, new.identity)
    if (yield COUNT_SESSIONS, holder)[0][0] >= most:
        yield REMOVE_ENDED_SESSIONS, (*holder, new.created)
        if (yield COUNT_SESSIONS, holder)[0][0] >= most:
            raise TooManyIdentities(kind="session", most=most)
    yield ADD_SESSION, tuple(new)
