"""Settings of buckets.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column.

    Existing buckets have no settings.
    """
    op.add_column("buckets", sa.Column("settings", sa.Text(), server_default="", nullable=False))


def downgrade() -> None:
    """Drop the column.

    Only for an index whose buckets have no settings: a policy would be lost.
    """
    op.drop_column("buckets", "settings")
