"""The statements of accounts, keys, users, groups, roles and sessions."""

from __future__ import annotations

from sqlalchemy import delete, func, or_, select, update

from sluice_s3.app.index.iam.rows import Account, Identity, Session, UserKey
from sluice_s3.app.index.schema.identity_tables import access_keys, accounts, identities, memberships, sessions
from sluice_s3.app.index.sql.builder import LIMIT, NO_OFFSET, columns, insertion, new_values, number, text, upsertion
from sluice_s3.app.index.sql.transaction import Statement

_KEYS = select(
    access_keys.c.access_key,
    access_keys.c.secret,
    access_keys.c.account_id,
    accounts.c.display_name,
    (access_keys.c.disabled + accounts.c.disabled).label("disabled"),
    access_keys.c.identity,
).join_from(access_keys, accounts, accounts.c.id == access_keys.c.account_id)
ACCESS_KEY = Statement(_KEYS.where(access_keys.c.access_key == text("ak")))
ACCESS_KEYS = Statement(
    _KEYS.where(access_keys.c.identity == text("whose")).order_by(access_keys.c.created, access_keys.c.access_key)
)
ACCOUNT = Statement(select(*columns(accounts, Account._fields)).where(accounts.c.id == text("account")))
ACCOUNTS = Statement(select(*columns(accounts, Account._fields)).order_by(accounts.c.created, accounts.c.id))
ACCOUNT_OF_EMAIL = Statement(select(accounts.c.id).where(accounts.c.email == text("mail")))
ADD_ACCOUNT = insertion(accounts)
ADD_ACCESS_KEY = insertion(access_keys)
REMOVE_ACCOUNT = Statement(delete(accounts).where(accounts.c.id == text("account")))
SET_DISABLED = Statement(
    update(accounts).values(**new_values(accounts, "disabled")).where(accounts.c.id == text("account"))
)
REMOVE_ACCESS_KEYS = Statement(delete(access_keys).where(access_keys.c.account_id == text("account")))
REMOVE_OWN_KEYS = Statement(
    delete(access_keys).where(access_keys.c.account_id == text("account"), access_keys.c.identity == text("whose"))
)

# the keys of a user, or of the account itself
_KEYS_OF_IDENTITY = (access_keys.c.account_id == text("account"), access_keys.c.identity == text("whose"))
KEYS_OF = Statement(
    select(*columns(access_keys, UserKey._fields))
    .where(*_KEYS_OF_IDENTITY)
    .order_by(access_keys.c.created, access_keys.c.access_key)
)
COUNT_KEYS = Statement(select(func.count()).select_from(access_keys).where(*_KEYS_OF_IDENTITY))
SET_KEY = Statement(
    update(access_keys)
    .values(**new_values(access_keys, "disabled"))
    .where(*_KEYS_OF_IDENTITY, access_keys.c.access_key == text("ak"))
)
SET_SECRET = Statement(
    update(access_keys)
    .values(**new_values(access_keys, "secret", "disabled"))
    .where(*_KEYS_OF_IDENTITY, access_keys.c.access_key == text("ak"))
)
REMOVE_KEY = Statement(delete(access_keys).where(*_KEYS_OF_IDENTITY, access_keys.c.access_key == text("ak")))

# users, groups and roles
_IDENTITY = select(*columns(identities, Identity._fields))
IDENTITY_BY_ID = Statement(_IDENTITY.where(identities.c.id == text("who")))
IDENTITY_BY_NAME = Statement(
    _IDENTITY.where(
        identities.c.kind == text("k"), identities.c.folded == text("f"), identities.c.account_id == text("account")
    )
)
IDENTITIES_NAMED = Statement(_IDENTITY.where(identities.c.kind == text("k"), identities.c.folded == text("f")))
IDENTITIES_PAGE = Statement(
    _IDENTITY.where(
        identities.c.account_id == text("account"),
        identities.c.kind == text("k"),
        identities.c.folded > text("after"),
        identities.c.path >= text("first"),
        identities.c.path < text("end"),
    )
    .order_by(identities.c.folded)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
COUNT_IDENTITIES = Statement(
    select(func.count())
    .select_from(identities)
    .where(identities.c.account_id == text("account"), identities.c.kind == text("k"))
)
ADD_IDENTITY = insertion(identities)
SET_IDENTITY = Statement(
    update(identities)
    .values(**new_values(identities, "name", "folded", "path", "document"))
    .where(identities.c.id == text("who"))
)
REMOVE_IDENTITY = Statement(delete(identities).where(identities.c.id == text("who")))
REMOVE_IDENTITIES = Statement(delete(identities).where(identities.c.account_id == text("account")))

# memberships: of users in groups, and of users, groups and roles in the policies attached to them
_BELONGS_TO = _IDENTITY.join_from(identities, memberships, memberships.c.group_id == identities.c.id)
GROUPS_OF = Statement(
    _BELONGS_TO.where(memberships.c.user_id == text("who"), identities.c.kind == text("k")).order_by(
        identities.c.folded
    )
)
POLICIES_OF_KEY = Statement(
    _IDENTITY.where(
        identities.c.kind == text("k"),
        identities.c.id.in_(
            select(memberships.c.group_id).where(
                or_(
                    memberships.c.user_id == text("who"),
                    memberships.c.user_id.in_(
                        select(memberships.c.group_id).where(memberships.c.user_id == text("in_group"))
                    ),
                )
            )
        ),
    ).order_by(identities.c.folded)
)
"""The policies attached to an identity, or to one of its groups."""
MEMBERS_OF = Statement(
    _IDENTITY.join_from(identities, memberships, memberships.c.user_id == identities.c.id)
    .where(memberships.c.group_id == text("who"))
    .order_by(identities.c.folded)
)
COUNT_MEMBERS = Statement(select(func.count()).select_from(memberships).where(memberships.c.group_id == text("who")))
ADD_MEMBERSHIP = upsertion(memberships, ("user_id", "group_id"))
REMOVE_MEMBERSHIP = Statement(
    delete(memberships).where(memberships.c.user_id == text("who"), memberships.c.group_id == text("of_group"))
)
REMOVE_MEMBERSHIPS = Statement(
    delete(memberships).where(
        or_(
            memberships.c.user_id.in_(select(identities.c.id).where(identities.c.account_id == text("account"))),
            memberships.c.group_id.in_(select(identities.c.id).where(identities.c.account_id == text("of_account"))),
        )
    )
)

# sessions
SESSION = Statement(
    select(*columns(sessions, Session._fields), accounts.c.display_name, accounts.c.disabled)
    .join_from(sessions, accounts, accounts.c.id == sessions.c.account_id)
    .where(sessions.c.access_key == text("ak"))
)
COUNT_SESSIONS = Statement(
    select(func.count())
    .select_from(sessions)
    .where(sessions.c.account_id == text("account"), sessions.c.identity == text("who"))
)
REMOVE_EXPIRED_SESSIONS_OF = Statement(
    delete(sessions).where(
        sessions.c.account_id == text("account"),
        sessions.c.identity == text("who"),
        sessions.c.expires <= number("until"),
    )
)
ADD_SESSION = insertion(sessions)
REMOVE_SESSION = Statement(delete(sessions).where(sessions.c.access_key == text("ak")))
REMOVE_OLD_SESSIONS = Statement(delete(sessions).where(sessions.c.expires < number("until")))
REMOVE_SESSIONS_OF = Statement(delete(sessions).where(sessions.c.identity == text("who")))
REMOVE_ALL_SESSIONS = Statement(delete(sessions).where(sessions.c.account_id == text("account")))
