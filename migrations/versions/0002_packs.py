"""Packs, and removals to be written down beside the data.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NUMBER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, NUMBER, nullable=False)


def _key(name: str) -> sa.Column[int]:
    return sa.Column(name, NUMBER, autoincrement=False, nullable=False)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "packs",
        _key("id"),
        _number("incarnation"),
        _number("sealed"),
        _number("size"),
        _number("dead"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("packs_incarnation", "packs", ["incarnation"], unique=False)
    op.create_table(
        "removals",
        _key("seq"),
        sa.Column("kind", sa.Text(), nullable=False),
        _number("bucket_id"),
        sa.Column("key", sa.Text(), nullable=False),
        _number("at"),
        sa.PrimaryKeyConstraint("seq"),
    )


def downgrade() -> None:
    """Take them away; records of packs cannot be read any more."""
    op.drop_table("removals")
    op.drop_table("packs")
