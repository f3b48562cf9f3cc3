"""What was configured of a bucket.

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
    """Nothing was configured so far."""
    op.add_column("buckets", sa.Column("settings", sa.Text(), server_default="", nullable=False))


def downgrade() -> None:
    """Only for an index whose buckets have no settings: a policy would be forgotten."""
    op.drop_column("buckets", "settings")
