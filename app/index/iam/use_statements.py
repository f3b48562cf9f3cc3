"""The statements of last uses, and of pages of accounts and users with them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Table, and_, cast, delete, func, literal_column, or_, select
from sqlalchemy.dialects import sqlite

from sluice_s3.app.index.iam.rows import ACCOUNT, IDENTITY, KEY, Account, Use, UserKey
from sluice_s3.app.index.schema.identity_tables import access_keys, accounts, identities, last_uses
from sluice_s3.app.index.schema.tables import buckets
from sluice_s3.app.index.sql.builder import (
    LIMIT,
    NO_OFFSET,
    columns,
    excluded,
    number,
    postgres_insert,
    text,
    upsertion,
)
from sluice_s3.app.index.sql.transaction import Statement


def _literal(kind: str) -> ColumnElement[str]:
    return literal_column(f"'{kind}'")


def _recording(kind: str, table: Table, subject: str, account: str) -> Statement:
    """Return the statement that records a use of what is still in a table, unless a later one is there."""

    def build(insert: Any) -> Any:
        existing = select(
            _literal(kind),
            table.c[subject],
            table.c[account],
            cast(number("at"), BigInteger),
            text("by_service"),
            text("in_region"),
        ).where(table.c[subject] == text("who"))
        return (
            insert(last_uses)
            .from_select(last_uses.c.keys(), existing)
            .on_conflict_do_update(
                index_elements=("kind", "subject"),
                set_=excluded("used", "service", "region"),
                where=literal_column("excluded.used") > last_uses.c.used,
            )
        )

    return Statement(build(sqlite.insert), lambda: build(postgres_insert()))


RECORD_USE = {
    KEY: _recording(KEY, access_keys, "access_key", "account_id"),
    IDENTITY: _recording(IDENTITY, identities, "id", "account_id"),
    ACCOUNT: _recording(ACCOUNT, accounts, "id", "id"),
}
START = upsertion(last_uses, ("kind", "subject"))
LAST_USE = Statement(
    select(*columns(last_uses, Use._fields)).where(last_uses.c.kind == text("k"), last_uses.c.subject == text("who"))
)

REMOVE_KEY_USE = Statement(
    delete(last_uses).where(
        last_uses.c.kind == _literal(KEY), last_uses.c.subject == text("ak"), last_uses.c.account_id == text("account")
    )
)
REMOVE_IDENTITY_USE = Statement(
    delete(last_uses).where(last_uses.c.kind == _literal(IDENTITY), last_uses.c.subject == text("who"))
)
REMOVE_OWN_KEY_USES = Statement(
    delete(last_uses).where(
        last_uses.c.kind == _literal(KEY),
        last_uses.c.account_id == text("account"),
        last_uses.c.subject.in_(
            select(access_keys.c.access_key).where(
                access_keys.c.account_id == text("of_account"), access_keys.c.identity == text("whose")
            )
        ),
    )
)
REMOVE_USES = Statement(delete(last_uses).where(last_uses.c.account_id == text("account")))

# keys with their last uses
_OF_KEY = and_(last_uses.c.kind == _literal(KEY), last_uses.c.subject == access_keys.c.access_key)
_KEY_USE = (
    *columns(access_keys, UserKey._fields),
    func.coalesce(last_uses.c.used, literal_column("0")),
    func.coalesce(last_uses.c.service, literal_column("''")),
    func.coalesce(last_uses.c.region, literal_column("''")),
)
_USERS = (
    identities.c.account_id == text("account"),
    identities.c.kind == literal_column("'user'"),
    identities.c.folded >= text("first"),
    identities.c.folded <= text("last"),
)
USER_KEY_USES = Statement(
    select(access_keys.c.identity, *_KEY_USE)
    .join_from(identities, access_keys, access_keys.c.identity == identities.c.id)
    .outerjoin(last_uses, _OF_KEY)
    .where(*_USERS)
    .order_by(access_keys.c.created, access_keys.c.access_key)
)
IDENTITY_USES = Statement(
    select(identities.c.id, last_uses.c.used)
    .join_from(
        identities, last_uses, and_(last_uses.c.kind == _literal(IDENTITY), last_uses.c.subject == identities.c.id)
    )
    .where(*_USERS)
)

# pages of accounts, oldest first
_AFTER = or_(
    accounts.c.created > number("after"),
    and_(accounts.c.created == number("same"), accounts.c.id > text("after_id")),
)
_BETWEEN = and_(
    _AFTER,
    or_(
        accounts.c.created < number("until"),
        and_(accounts.c.created == number("same_until"), accounts.c.id <= text("until_id")),
    ),
)
ACCOUNTS_PAGE = Statement(
    select(*columns(accounts, Account._fields))
    .where(_AFTER)
    .order_by(accounts.c.created, accounts.c.id)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
OWN_KEY_USES = Statement(
    select(access_keys.c.account_id, *_KEY_USE)
    .join_from(accounts, access_keys, access_keys.c.account_id == accounts.c.id)
    .outerjoin(last_uses, _OF_KEY)
    .where(_BETWEEN, access_keys.c.identity == literal_column("''"))
    .order_by(access_keys.c.created, access_keys.c.access_key)
)
IDENTITY_COUNTS = Statement(
    select(identities.c.account_id, identities.c.kind, func.count())
    .join_from(accounts, identities, identities.c.account_id == accounts.c.id)
    .where(_BETWEEN)
    .group_by(identities.c.account_id, identities.c.kind)
)
BUCKET_COUNTS = Statement(
    select(buckets.c.owner_id, func.count())
    .join_from(accounts, buckets, buckets.c.owner_id == accounts.c.id)
    .where(_BETWEEN)
    .group_by(buckets.c.owner_id)
)
ACCOUNT_USES = Statement(
    select(last_uses.c.account_id, func.max(last_uses.c.used))
    .join_from(accounts, last_uses, last_uses.c.account_id == accounts.c.id)
    .where(_BETWEEN)
    .group_by(last_uses.c.account_id)
)
IDLE_KEYS = Statement(
    select(
        access_keys.c.access_key,
        access_keys.c.account_id,
        accounts.c.display_name,
        func.coalesce(identities.c.name, literal_column("''")),
        access_keys.c.created,
        func.coalesce(last_uses.c.used, literal_column("0")),
    )
    .join_from(access_keys, accounts, accounts.c.id == access_keys.c.account_id)
    .outerjoin(identities, identities.c.id == access_keys.c.identity)
    .outerjoin(last_uses, _OF_KEY)
    .where(
        access_keys.c.disabled == literal_column("0"),
        accounts.c.disabled == literal_column("0"),
        or_(
            last_uses.c.used < number("unused"),
            and_(last_uses.c.used.is_(None), access_keys.c.created < number("never")),
            access_keys.c.created < number("old"),
        ),
    )
    .order_by(access_keys.c.created, access_keys.c.access_key)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
