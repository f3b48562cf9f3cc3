"""Users, groups, roles and policies of accounts, access keys of users, and sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sluice_s3.app.errors import AccountExists, IdentityExists, IdentityInUse, NoSuchIdentity, TooManyIdentities
from sluice_s3.app.index.iam.rows import (
    GROUP,
    POLICY,
    USER,
    AccessKey,
    Identity,
    KeyOwner,
    Session,
    UserKey,
    console_session_name,
    sign_in_key,
)
from sluice_s3.app.index.iam.statements import (
    ACCESS_KEY,
    ADD_ACCESS_KEY,
    ADD_IDENTITY,
    ADD_MEMBERSHIP,
    ADD_SESSION,
    COUNT_IDENTITIES,
    COUNT_KEYS,
    COUNT_MEMBERS,
    COUNT_SESSIONS,
    GROUPS_OF,
    IDENTITIES_NAMED,
    IDENTITIES_PAGE,
    IDENTITY_BY_ID,
    IDENTITY_BY_NAME,
    KEYS_OF,
    MEMBERS_OF,
    POLICIES_OF_KEY,
    REMOVE_EXPIRED_SESSIONS_OF,
    REMOVE_IDENTITY,
    REMOVE_KEY,
    REMOVE_MEMBERSHIP,
    REMOVE_OLD_SESSIONS,
    REMOVE_SESSION,
    REMOVE_SESSIONS_OF,
    SESSION,
    SET_IDENTITY,
    SET_KEY,
    SET_SECRET,
)
from sluice_s3.app.index.iam.use_statements import REMOVE_IDENTITY_USE, REMOVE_KEY_USE
from sluice_s3.app.index.sql.transaction import Row, Transaction, now_ms

SESSION_RETENTION_MS = 86_400_000
"""Milliseconds for which an ended session is kept, so that its key is answered with ExpiredToken."""
Named = tuple[str, str]
"""Kind and name of an identity."""
AFTER_EVERY_PATH = "\U0010ffff"
"""A text that sorts after every path."""


def holder(account_id: str, identity: str) -> Transaction[KeyOwner | None]:
    """Return the owner of a key: a user with its groups, or a role, and the policies attached to them.

    Returns None when it no longer exists.
    """
    rows = yield IDENTITY_BY_ID, (identity,)
    if not rows:
        return None
    groups = yield GROUPS_OF, (identity, GROUP)
    policies = yield POLICIES_OF_KEY, (POLICY, identity, identity)
    return KeyOwner(account_id, Identity._make(rows[0]), tuple(map(Identity._make, [*groups, *policies])))


def session(access_key: str) -> Transaction[AccessKey | None]:
    """Return a temporary key with its holder.

    Returns None when the key, its user or role, or the key that the console was signed in to with, does not exist.
    """
    rows = yield SESSION, (access_key,)
    if not rows:
        return None
    *fields, display_name, disabled = rows[0]
    stored = Session._make(fields)
    used = sign_in_key(stored.name)
    if used is not None and not _is_usable((yield ACCESS_KEY, (used,)), stored):
        return None
    owner: KeyOwner | None = KeyOwner(stored.account_id, None)
    if stored.identity:
        owner = yield from holder(stored.account_id, stored.identity)
    if owner is None:
        return None
    owner = owner._replace(session=stored.name, policies=stored.policies, began=stored.created)
    key = AccessKey(access_key, stored.secret, stored.account_id, display_name, disabled > 0)
    return key._replace(holder=owner, token=stored.token, expires=stored.expires)


def _is_usable(rows: Sequence[Row], stored: Session) -> bool:
    """Return whether the key that a session of the console was opened with is still the same, and enabled."""
    if not rows:
        return False
    access_key, secret, account_id, _, disabled, identity = rows[0]
    is_same = (account_id, identity) == (stored.account_id, stored.identity)
    return is_same and not disabled and console_session_name(access_key, secret) == stored.name


def identity(account_id: str, kind: str, name: str) -> Transaction[Identity | None]:
    """Return the identity of that name, compared case-insensitively."""
    rows = yield IDENTITY_BY_NAME, (kind, name.lower(), account_id)
    return Identity._make(rows[0]) if rows else None


def identity_of_id(unique_id: str) -> Transaction[Identity | None]:
    """Return an identity by its id, in any account."""
    rows = yield IDENTITY_BY_ID, (unique_id,)
    return Identity._make(rows[0]) if rows else None


def named(kind: str, name: str) -> Transaction[list[Identity]]:
    """Return the identities of that name in all accounts."""
    return [Identity._make(row) for row in (yield IDENTITIES_NAMED, (kind, name.lower()))]


def page(account_id: str, kind: str, path: str, after: str, limit: int) -> Transaction[list[Identity]]:
    """Return identities whose paths start with `path`, ordered by name.

    They follow the folded name `after`.
    """
    return [
        Identity._make(row)
        for row in (yield IDENTITIES_PAGE, (account_id, kind, after, path, path + AFTER_EVERY_PATH, limit))
    ]


def count(account_id: str, kind: str) -> Transaction[int]:
    """Return how many identities of a kind an account has."""
    rows = yield COUNT_IDENTITIES, (account_id, kind)
    return int(rows[0][0])


def add(new: Identity, maximum: int) -> Transaction[None]:
    """Add an identity.

    Raises IdentityExists, TooManyIdentities when the account has `maximum` of the kind.
    """
    if (yield from identity(new.account_id, new.kind, new.name)):
        raise IdentityExists(kind=new.kind, name=new.name)
    if (yield from count(new.account_id, new.kind)) >= maximum:
        raise TooManyIdentities(kind=new.kind, most=maximum)
    yield ADD_IDENTITY, tuple(new)


def change(account_id: str, kind: str, name: str, function: Callable[[Identity], Identity]) -> Transaction[Identity]:
    """Replace an identity by the result of a function.

    The function may raise domain errors and may be called more than once. Raises NoSuchIdentity, IdentityExists for a
    new name that is taken.
    """
    current = yield from _require_identity(account_id, kind, name)
    new = function(current)
    new = new._replace(folded=new.name.lower())
    if new.folded != current.folded and (yield from identity(account_id, kind, new.name)):
        raise IdentityExists(kind=kind, name=new.name)
    yield SET_IDENTITY, (new.name, new.folded, new.path, new.document, current.id)
    return new


def remove(account_id: str, kind: str, name: str, check: Callable[[Identity], None]) -> Transaction[None]:
    """Remove an identity with its sessions.

    Raises NoSuchIdentity, IdentityInUse while it has keys, groups, attached policies or members, and what `check`
    raises.
    """
    current = yield from _require_identity(account_id, kind, name)
    check(current)
    if (yield MEMBERS_OF, (current.id,)) or (yield GROUPS_OF, (current.id, GROUP)):
        raise IdentityInUse(what="entities" if kind == POLICY else "group")
    if (yield GROUPS_OF, (current.id, POLICY)):
        raise IdentityInUse(what="attached")
    if (yield COUNT_KEYS, (account_id, current.id))[0][0]:
        raise IdentityInUse(what="key")
    yield REMOVE_SESSIONS_OF, (current.id,)
    yield REMOVE_IDENTITY_USE, (current.id,)
    yield REMOVE_IDENTITY, (current.id,)


def _require_identity(account_id: str, kind: str, name: str) -> Transaction[Identity]:
    current = yield from identity(account_id, kind, name)
    if current is None:
        raise NoSuchIdentity(kind=kind, name=name)
    return current


def join(account_id: str, member: Named, group: Named, maximum: int) -> Transaction[None]:
    """Add a user to a group, or attach a policy (`group`) to a user, group or role.

    Raises NoSuchIdentity, TooManyIdentities when the member has `maximum` of that kind.
    """
    in_group = yield from _require_identity(account_id, *group)
    joining = yield from _require_identity(account_id, *member)
    groups = yield GROUPS_OF, (joining.id, in_group.kind)
    if len(groups) >= maximum and all(row[0] != in_group.id for row in groups):
        what = f"groups of a {USER}" if in_group.kind == GROUP else "PoliciesPerIdentity"
        raise TooManyIdentities(kind=what, most=maximum)
    yield ADD_MEMBERSHIP, (joining.id, in_group.id)


def leave(account_id: str, member: Named, group: Named) -> Transaction[None]:
    """Remove a user from a group, or detach a policy.

    Raises NoSuchIdentity: for a user who is not a member of the group, or a policy that is not attached, too.
    """
    in_group = yield from _require_identity(account_id, *group)
    leaving = yield from _require_identity(account_id, *member)
    if all(row[0] != in_group.id for row in (yield GROUPS_OF, (leaving.id, in_group.kind))):
        missing = group if in_group.kind == POLICY else member
        raise NoSuchIdentity(kind=missing[0], name=missing[1])
    yield REMOVE_MEMBERSHIP, (leaving.id, in_group.id)


def members(group_id: str) -> Transaction[list[Identity]]:
    """Return the users of a group, or all that a policy is attached to."""
    return [Identity._make(row) for row in (yield MEMBERS_OF, (group_id,))]


def count_members(group_id: str) -> Transaction[int]:
    """Return how many users a group has, or how many identities a policy is attached to."""
    return int((yield COUNT_MEMBERS, (group_id,))[0][0])


def groups_of(identity_id: str, kind: str = GROUP) -> Transaction[list[Identity]]:
    """Return the groups of a user, or the policies (`kind`) attached to an identity."""
    return [Identity._make(row) for row in (yield GROUPS_OF, (identity_id, kind))]


def keys_of(account_id: str, identity_id: str) -> Transaction[list[UserKey]]:
    """Return the keys of a user or account, oldest first."""
    rows = yield KEYS_OF, (account_id, identity_id)
    return [UserKey(key, disabled > 0, created) for key, disabled, created in rows]


def add_key(account_id: str, identity_id: str, key: str, secret: str, maximum: int) -> Transaction[UserKey]:
    """Add a key.

    Raises NoSuchIdentity, TooManyIdentities when there are `maximum`, AccountExists for a key that is taken.
    """
    if identity_id and not (yield IDENTITY_BY_ID, (identity_id,)):
        raise NoSuchIdentity(kind="user", name=identity_id)
    if (yield ACCESS_KEY, (key,)):
        raise AccountExists(access_key=key)
    if (yield COUNT_KEYS, (account_id, identity_id))[0][0] >= maximum:
        raise TooManyIdentities(kind="key", most=maximum)
    created = now_ms()
    yield ADD_ACCESS_KEY, (key, secret, account_id, 0, created, identity_id)
    return UserKey(key, False, created)


def set_key(account_id: str, identity_id: str, key: str, disabled: bool) -> Transaction[None]:
    """Disable or enable a key.

    Raises NoSuchIdentity.
    """
    yield from _check_key(account_id, identity_id, key)
    yield SET_KEY, (int(disabled), account_id, identity_id, key)


def set_secret(account_id: str, identity_id: str, key: str, secret: str, disabled: bool) -> Transaction[None]:
    """Replace the secret of a key, and disable or enable it.

    Raises NoSuchIdentity.
    """
    yield from _check_key(account_id, identity_id, key)
    yield SET_SECRET, (secret, int(disabled), account_id, identity_id, key)


def remove_key(account_id: str, identity_id: str, key: str) -> Transaction[None]:
    """Remove a key.

    Raises NoSuchIdentity.
    """
    yield from _check_key(account_id, identity_id, key)
    yield REMOVE_KEY, (account_id, identity_id, key)
    yield REMOVE_KEY_USE, (key, account_id)


def _check_key(account_id: str, identity_id: str, key: str) -> Transaction[None]:
    if all(row[0] != key for row in (yield KEYS_OF, (account_id, identity_id))):
        raise NoSuchIdentity(kind="key", name=key)


def add_session(new: Session, maximum: int) -> Transaction[None]:
    """Add a temporary key, and remove sessions that ended more than `SESSION_RETENTION_MS` ago.

    Raises TooManyIdentities when its user or role, or the account itself, has `maximum` active sessions. The limit is
    per holder, so that one holder cannot block others.
    """
    yield REMOVE_OLD_SESSIONS, (new.created - SESSION_RETENTION_MS,)
    holder = (new.account_id, new.identity)
    if (yield COUNT_SESSIONS, holder)[0][0] >= maximum:
        yield REMOVE_EXPIRED_SESSIONS_OF, (*holder, new.created)
        if (yield COUNT_SESSIONS, holder)[0][0] >= maximum:
            raise TooManyIdentities(kind="session", most=maximum)
    yield ADD_SESSION, tuple(new)


def remove_session(access_key: str) -> Transaction[None]:
    """End a session: its temporary key works no more."""
    yield REMOVE_SESSION, (access_key,)
