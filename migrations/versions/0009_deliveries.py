"""The outbox of messages, and lines of access logs that wait to become objects.

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

NUMBER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "outbox",
        sa.Column("id", NUMBER, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("target", TEXT, nullable=False),
        sa.Column("bucket_id", NUMBER, nullable=False),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("at", NUMBER, nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
    )
    op.create_index("outbox_target", "outbox", ["target", "id"])
    op.create_table(
        "log_rows",
        sa.Column("id", NUMBER, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("bucket_id", NUMBER, nullable=False),
        sa.Column("bucket", TEXT, nullable=False),
        sa.Column("at", NUMBER, nullable=False),
        sa.Column("lines", TEXT, nullable=False),
    )


def downgrade() -> None:
    """Drop the tables.

    Waiting messages and lines are lost.
    """
    op.drop_table("log_rows")
    op.drop_table("outbox")
