"""Users, groups and roles of accounts, their keys, and sessions.

Revision ID: 0010
Revises: 0009
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

NUMBER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _table(name: str, keys: str, texts: str, numbers: str = "") -> None:
    op.create_table(
        name,
        *(sa.Column(one, TEXT, primary_key=True, nullable=False) for one in keys.split()),
        *(sa.Column(one, TEXT, nullable=False) for one in texts.split()),
        *(sa.Column(one, NUMBER, nullable=False) for one in numbers.split()),
        sqlite_with_rowid=False,
    )


def upgrade() -> None:
    """Create the tables.

    Every existing key belongs to its account itself.
    """
    op.add_column("access_keys", sa.Column("identity", TEXT, server_default="", nullable=False))
    _table("identities", "id", "account_id kind name folded path document", "created")
    op.create_index("identities_name", "identities", ["kind", "folded", "account_id"], unique=True)
    op.create_index("identities_account", "identities", ["account_id", "kind", "folded"])
    _table("memberships", "user_id group_id", "")
    op.create_index("memberships_group", "memberships", ["group_id"])
    _table("sessions", "access_key", "secret token account_id identity name policies", "created expires")
    for column in ("account_id", "identity", "expires"):
        op.create_index(f"sessions_{column.removesuffix('_id')}", "sessions", [column])


def downgrade() -> None:
    """Drop the tables.

    Only for an index without users: their keys would become keys of the account.
    """
    for table in ("sessions", "memberships", "identities"):
        op.drop_table(table)
    op.drop_column("access_keys", "identity")
