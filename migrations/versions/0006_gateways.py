"""Several gateways on one index: heartbeats of their writers, and leases.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NUMBER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, NUMBER, nullable=False)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "heartbeats",
        sa.Column("incarnation", NUMBER, autoincrement=False, nullable=False),
        _number("number"),
        _number("settled"),
        sa.PrimaryKeyConstraint("incarnation"),
    )
    op.create_table(
        "leases",
        sa.Column("name", TEXT, nullable=False),
        _number("holder"),
        _number("term"),
        sa.PrimaryKeyConstraint("name"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Drop the tables.

    Only while no gateway runs.
    """
    op.drop_table("leases")
    op.drop_table("heartbeats")
