"""Tables of accounts and their access keys, users, groups, roles and sessions."""

from __future__ import annotations

from sqlalchemy import Column, Index, Table

from sluice_s3.app.index.schema.columns import ByteOrderedText, metadata, name_key, number, text

accounts = Table(
    "accounts",
    metadata,
    name_key("id"),
    text("display_name"),
    text("email"),
    number("disabled"),
    number("created"),
    sqlite_with_rowid=False,
)

access_keys = Table(
    "access_keys",
    metadata,
    name_key("access_key"),
    text("secret"),
    text("account_id"),
    number("disabled"),
    number("created"),
    Column("identity", ByteOrderedText, nullable=False, server_default=""),
    Index("access_keys_account", "account_id"),
    sqlite_with_rowid=False,
)
"""`identity` is the id of the user who owns the key, empty for a key of the account itself."""

identities = Table(
    "identities",
    metadata,
    name_key("id"),
    text("account_id"),
    text("kind"),
    text("name"),
    text("folded"),
    text("path"),
    text("document"),
    number("created"),
    Index("identities_name", "kind", "folded", "account_id", unique=True),
    Index("identities_account", "account_id", "kind", "folded"),
    sqlite_with_rowid=False,
)
"""Users, groups, roles and managed policies. `id` is never reused. `folded` is the name in lower case, because names
that differ in case only are the same. `document` is a JSON object with all other fields: see
`app.access.iam.documents`."""

memberships = Table(
    "memberships",
    metadata,
    name_key("user_id"),
    name_key("group_id"),
    Index("memberships_group", "group_id"),
    sqlite_with_rowid=False,
)

last_uses = Table(
    "last_uses",
    metadata,
    name_key("kind"),
    name_key("subject"),
    text("account_id"),
    number("used"),
    text("service"),
    text("region"),
    Index("last_uses_account", "account_id"),
    sqlite_with_rowid=False,
)
"""Last uses, see `app.index.iam.uses`. A table of its own, because keys are journaled and uses are not: a rebuilt index
knows none. `used` is in milliseconds since the epoch."""

sessions = Table(
    "sessions",
    metadata,
    name_key("access_key"),
    text("secret"),
    text("token"),
    text("account_id"),
    text("identity"),
    text("name"),
    text("policies"),
    number("created"),
    number("expires"),
    Index("sessions_account", "account_id"),
    Index("sessions_identity", "identity"),
    Index("sessions_expires", "expires"),
    sqlite_with_rowid=False,
)
"""Temporary keys. `identity` is the assumed role or the requesting user, empty for the account itself. `policies` is a
JSON list of the policies that limit the session. Sessions are not journaled: a rebuilt index has none."""
