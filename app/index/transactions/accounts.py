"""Accounts, their access keys, and the identity of the stores that the index belongs to."""

from __future__ import annotations

from sluice_s3.app.errors import AccountExists, NoSuchAccount
from sluice_s3.app.index.identity_rows import TEMPORARY
from sluice_s3.app.index.identity_statements import (
    ACCESS_KEY,
    ACCESS_KEYS,
    ACCOUNT,
    ACCOUNTS,
    ADD_ACCESS_KEY,
    ADD_ACCOUNT,
    EMAIL_TAKEN,
    LEAVE_ALL,
    REMOVE_ACCESS_KEYS,
    REMOVE_ACCOUNT,
    REMOVE_ALL,
    REMOVE_ALL_SESSIONS,
    REMOVE_OWN_KEYS,
    SET_DISABLED,
)
from sluice_s3.app.index.rows import AccessKey, Account
from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.app.index.sql.transaction import Row, Transaction, now_ms, of_store
from sluice_s3.app.index.statements import IDENTITIES, SET_META
from sluice_s3.app.index.transactions.identities import holder, session

IDENTITY = "store"
OWN = ""
"""`access_keys.identity` of a key that belongs to the account itself."""


def _access_key(row: Row) -> AccessKey:
    return AccessKey._make((*row[:4], row[4] > 0, None, "", 0))


def _account(row: Row) -> Account:
    identity, display_name, email, disabled, created = row
    return Account(identity, display_name, email, disabled > 0, created)


def access_key(key: str) -> Transaction[AccessKey | None]:
    """Return an access key with its account.

    `holder` is set when a user, role or session owns the key.
    """
    rows = yield ACCESS_KEY, (key,)
    if not rows:
        return (yield from session(key)) if key.startswith(TEMPORARY) else None
    found, identity = _access_key(rows[0]), rows[0][5]
    if identity == OWN:
        return found
    user = yield from holder(found.account_id, identity)
    return None if user is None else found._replace(holder=user)


def account(account_id: str) -> Transaction[Account | None]:
    """Return an account by its canonical id."""
    rows = yield ACCOUNT, (account_id,)
    return _account(rows[0]) if rows else None


def accounts() -> Transaction[list[tuple[Account, list[AccessKey]]]]:
    """Return all accounts, oldest first, with their own keys."""
    keys: dict[str, list[AccessKey]] = {}
    for row in (yield ACCESS_KEYS, (OWN,)):
        key = _access_key(row)
        keys.setdefault(key.account_id, []).append(key)
    rows = yield ACCOUNTS, ()
    return [(account, keys.get(account.id, [])) for account in map(_account, rows)]


def add_account(account: Account, key: str, secret: str) -> Transaction[None]:
    """Add an account with its first key, or a key to an existing account.

    Raises AccountExists.
    """
    if (yield ACCESS_KEY, (key,)):
        raise AccountExists(access_key=key)
    yield from _ensure(account)
    yield ADD_ACCESS_KEY, (key, secret, account.id, 0, now_ms(), OWN)


def replace_keys(account: Account, key: str, secret: str) -> Transaction[None]:
    """Replace an account's own keys by this one.

    Raises AccountExists. The account is created if it is missing, and its disabled state is set from `account`.
    """
    rows = yield ACCESS_KEY, (key,)
    if rows and (rows[0][2] != account.id or rows[0][5] != OWN):
        raise AccountExists(access_key=key)
    yield from _ensure(account)
    yield SET_DISABLED, (int(account.disabled), account.id)
    yield REMOVE_OWN_KEYS, (account.id, OWN)
    yield ADD_ACCESS_KEY, (key, secret, account.id, 0, now_ms(), OWN)


def _ensure(account: Account) -> Transaction[None]:
    if (yield ACCOUNT, (account.id,)):
        return
    if account.email and (yield EMAIL_TAKEN, (account.email,)):
        raise AccountExists(email=account.email)
    created = account.created or now_ms()
    yield ADD_ACCOUNT, (account.id, account.display_name, account.email, int(account.disabled), created)


def remove_account(account_id: str) -> Transaction[None]:
    """Remove an account with its keys, users, groups, roles and sessions.

    Raises NoSuchAccount.
    """
    if not (yield ACCOUNT, (account_id,)):
        raise NoSuchAccount()
    yield LEAVE_ALL, (account_id, account_id)
    yield REMOVE_ALL, (account_id,)
    yield REMOVE_ALL_SESSIONS, (account_id,)
    yield REMOVE_ACCESS_KEYS, (account_id,)
    yield REMOVE_ACCOUNT, (account_id,)


def set_disabled(account_id: str, disabled: bool) -> Transaction[None]:
    """Disable or enable an account.

    Raises NoSuchAccount.
    """
    if not (yield ACCOUNT, (account_id,)):
        raise NoSuchAccount()
    yield SET_DISABLED, (int(disabled), account_id)


def identities() -> Transaction[dict[str, tuple[str, int]]]:
    """Return the UUID and generation of each store that this index belongs to, by name."""
    found = {}
    for note, value in (yield IDENTITIES, (IDENTITY, of_store(IDENTITY, ""), of_store(IDENTITY, "\x7f"))):
        store, _, generation = value.partition(" ")
        found[note.partition(":")[2] or DEFAULT] = store, int(generation)
    return found


def set_identity(store: str, generation: int, name: str = DEFAULT) -> Transaction[None]:
    """Bind this index to a store."""
    yield SET_META, (of_store(IDENTITY, name), f"{store} {generation}")
