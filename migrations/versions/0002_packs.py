"""Packs, tombstones, journals, and the quarantine of damaged blobs.

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
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, NUMBER, nullable=False)


def _key(name: str) -> sa.Column[int]:
    return sa.Column(name, NUMBER, autoincrement=False, nullable=False)


def upgrade() -> None:
    """Create the tables."""
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
        sa.Column("kind", TEXT, nullable=False),
        _number("bucket_id"),
        sa.Column("key", TEXT, nullable=False),
        _number("at"),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_table(
        "journals",
        _key("id"),
        _number("snapshot"),
        _number("bytes"),
        _number("rows"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "quarantine",
        sa.Column("locator", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        _number("found"),
        sa.PrimaryKeyConstraint("locator"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Drop the tables.

    Records in packs become unreadable.
    """
    op.drop_table("quarantine")
    op.drop_table("journals")
    op.drop_table("removals")
    op.drop_table("packs")
