"""Audit events.

Revision ID: 0013
Revises: 0012
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

NUMBER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TEXTS = (
    "principal",
    "account_id",
    "access_key",
    "address",
    "source",
    "action",
    "resource",
    "outcome",
    "request_id",
)


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "audit_events",
        sa.Column("id", NUMBER, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("at", NUMBER, nullable=False),
        *(sa.Column(name, TEXT, nullable=False) for name in TEXTS),
        sa.Column("detail", sa.Text(), nullable=False),
    )
    op.create_index("audit_events_at", "audit_events", ["at", "id"])


def downgrade() -> None:
    """Drop the table: what was recorded is lost."""
    op.drop_table("audit_events")
