"""Accounts and their keys, and what the index knows of itself."""

from __future__ import annotations

from app.errors import AccountExists, NoSuchAccount
from app.index.rows import AccessKey, Account
from app.index.schema import DEFAULT
from app.index.statements import (
    ACCESS_KEY,
    ACCESS_KEYS,
    ACCOUNT,
    ACCOUNTS,
    ADD_ACCESS_KEY,
    ADD_ACCOUNT,
    EMAIL_TAKEN,
    IDENTITIES,
    REMOVE_ACCESS_KEYS,
    REMOVE_ACCOUNT,
    SET_DISABLED,
    SET_META,
)
from app.index.steps import Row, Transaction, now_ms, of_store

IDENTITY = "store"


def _access_key(row: Row) -> AccessKey:
    return AccessKey._make((*row[:4], row[4] > 0))


def _account(row: Row) -> Account:
    identity, display_name, email, disabled, created = row
    return Account(identity, display_name, email, disabled > 0, created)


def access_key(key: str) -> Transaction[AccessKey | None]:
    """A key with its account."""
    rows = yield ACCESS_KEY, (key,)
    return _access_key(rows[0]) if rows else None


def account(account_id: str) -> Transaction[Account | None]:
    """An account by its canonical id."""
    rows = yield ACCOUNT, (account_id,)
    return _account(rows[0]) if rows else None


def accounts() -> Transaction[list[tuple[Account, list[AccessKey]]]]:
    """All accounts, oldest first, with their keys."""
    keys: dict[str, list[AccessKey]] = {}
    for row in (yield ACCESS_KEYS, ()):
        key = _access_key(row)
        keys.setdefault(key.account_id, []).append(key)
    rows = yield ACCOUNTS, ()
    return [(account, keys.get(account.id, [])) for account in map(_account, rows)]


def add_account(account: Account, key: str, secret: str) -> Transaction[None]:
    """Add an account with a key, or a key to an account."""
    if (yield ACCESS_KEY, (key,)):
        raise AccountExists(access_key=key)
    yield from _ensure(account)
    yield ADD_ACCESS_KEY, (key, secret, account.id, 0, now_ms())


def replace_keys(account: Account, key: str, secret: str) -> Transaction[None]:
    """Give an account exactly this key; it is made if it is missing and enabled if it was disabled."""
    rows = yield ACCESS_KEY, (key,)
    if rows and rows[0][2] != account.id:
        raise AccountExists(access_key=key)
    yield from _ensure(account)
    yield SET_DISABLED, (int(account.disabled), account.id)
    yield REMOVE_ACCESS_KEYS, (account.id,)
    yield ADD_ACCESS_KEY, (key, secret, account.id, 0, now_ms())


def _ensure(account: Account) -> Transaction[None]:
    if (yield ACCOUNT, (account.id,)):
        return
    if account.email and (yield EMAIL_TAKEN, (account.email,)):
        raise AccountExists(email=account.email)
    created = account.created or now_ms()
    yield ADD_ACCOUNT, (account.id, account.display_name, account.email, int(account.disabled), created)


def remove_account(account_id: str) -> Transaction[None]:
    """Remove an account and its keys."""
    if not (yield ACCOUNT, (account_id,)):
        raise NoSuchAccount()
    yield REMOVE_ACCESS_KEYS, (account_id,)
    yield REMOVE_ACCOUNT, (account_id,)


def set_disabled(account_id: str, disabled: bool) -> Transaction[None]:
    """Disable or enable an account."""
    if not (yield ACCOUNT, (account_id,)):
        raise NoSuchAccount()
    yield SET_DISABLED, (int(disabled), account_id)


def identities() -> Transaction[dict[str, tuple[str, int]]]:
    """The UUID and generation of each store that this index belongs to, by the store's name."""
    found = {}
    for note, value in (yield IDENTITIES, (IDENTITY, of_store(IDENTITY, ""), of_store(IDENTITY, "\x7f"))):
        store, _, generation = value.partition(" ")
        found[note.partition(":")[2] or DEFAULT] = store, int(generation)
    return found


def set_identity(store: str, generation: int, name: str) -> Transaction[None]:
    """Bind this index to a store."""
    yield SET_META, (of_store(IDENTITY, name), f"{store} {generation}")
