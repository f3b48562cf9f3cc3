"""Accounts and their access keys."""

from __future__ import annotations

from sluice_s3.app.errors import AccountExists, NoSuchAccount
from sluice_s3.app.index.iam.identities import holder, session
from sluice_s3.app.index.iam.rows import TEMPORARY, AccessKey, Account
from sluice_s3.app.index.iam.statements import (
    ACCESS_KEY,
    ACCESS_KEYS,
    ACCOUNT,
    ACCOUNT_OF_EMAIL,
    ACCOUNTS,
    ADD_ACCESS_KEY,
    ADD_ACCOUNT,
    REMOVE_ACCESS_KEYS,
    REMOVE_ACCOUNT,
    REMOVE_ALL_SESSIONS,
    REMOVE_IDENTITIES,
    REMOVE_MEMBERSHIPS,
    REMOVE_OWN_KEYS,
    SET_DISABLED,
)
from sluice_s3.app.index.iam.use_statements import REMOVE_OWN_KEY_USES, REMOVE_USES
from sluice_s3.app.index.sql.transaction import Row, Transaction, now_ms

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
    account_key, identity = _access_key(rows[0]), rows[0][5]
    if identity == OWN:
        return account_key
    user = yield from holder(account_key.account_id, identity)
    return None if user is None else account_key._replace(holder=user)


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
    yield REMOVE_OWN_KEY_USES, (account.id, account.id, OWN)
    yield REMOVE_OWN_KEYS, (account.id, OWN)
    yield ADD_ACCESS_KEY, (key, secret, account.id, 0, now_ms(), OWN)


def _ensure(account: Account) -> Transaction[None]:
    if (yield ACCOUNT, (account.id,)):
        return
    if account.email and (yield ACCOUNT_OF_EMAIL, (account.email,)):
        raise AccountExists(email=account.email)
    created = account.created or now_ms()
    yield ADD_ACCOUNT, (account.id, account.display_name, account.email, int(account.disabled), created)


def remove_account(account_id: str) -> Transaction[None]:
    """Remove an account with its keys, users, groups, roles and sessions.

    Raises NoSuchAccount.
    """
    if not (yield ACCOUNT, (account_id,)):
        raise NoSuchAccount()
    yield REMOVE_MEMBERSHIPS, (account_id, account_id)
    yield REMOVE_IDENTITIES, (account_id,)
    yield REMOVE_ALL_SESSIONS, (account_id,)
    yield REMOVE_USES, (account_id,)
    yield REMOVE_ACCESS_KEYS, (account_id,)
    yield REMOVE_ACCOUNT, (account_id,)


def set_disabled(account_id: str, disabled: bool) -> Transaction[None]:
    """Disable or enable an account.

    Raises NoSuchAccount.
    """
    if not (yield ACCOUNT, (account_id,)):
        raise NoSuchAccount()
    yield SET_DISABLED, (int(disabled), account_id)
