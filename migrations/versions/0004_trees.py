"""Plain files: write intents, and files that are not hashed yet.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

NUMBER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, NUMBER, nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, TEXT, nullable=False)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "intents",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        _number("incarnation"),
        _number("bucket_id"),
        _text("key"),
        _text("kind"),
        _text("body"),
        _number("blob_id"),
        _number("upload"),
        _text("new"),
        _text("parts"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("intents_key", "intents", ["bucket_id", "key"], unique=True)
    op.create_index("intents_incarnation", "intents", ["incarnation"], unique=False)
    op.create_table(
        "unhashed",
        sa.Column("seq", NUMBER, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )


def downgrade() -> None:
    """Drop the tables.

    Only for an index without intents: the state of a changed file would be lost.
    """
    op.drop_table("unhashed")
    op.drop_table("intents")
