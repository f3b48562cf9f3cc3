"""When access keys, users, roles and accounts were last used.

Revision ID: 0012
Revises: 0011
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

NUMBER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table. Nothing is known of earlier uses."""
    op.create_table(
        "last_uses",
        sa.Column("kind", TEXT, primary_key=True, nullable=False),
        sa.Column("subject", TEXT, primary_key=True, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("used", NUMBER, nullable=False),
        sa.Column("service", TEXT, nullable=False),
        sa.Column("region", TEXT, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("last_uses_account", "last_uses", ["account_id"])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("last_uses")
