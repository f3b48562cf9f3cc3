"""Several stores: the store of each bucket, pack and journal.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NUMBER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
DEFAULT = "default"


def _text(name: str, default: str) -> sa.Column[str]:
    return sa.Column(name, TEXT, server_default=default, nullable=False)


def upgrade() -> None:
    """Add the columns.

    All existing rows belong to the default store.
    """
    op.add_column("buckets", _text("store", DEFAULT))
    op.add_column("buckets", _text("source", ""))
    op.add_column("buckets", sa.Column("moved", NUMBER, server_default="0", nullable=False))
    op.add_column("packs", _text("store", DEFAULT))
    op.add_column("journals", _text("store", DEFAULT))
    op.add_column("removals", _text("store", ""))


def downgrade() -> None:
    """Drop the columns.

    Only for an index that uses no other store.
    """
    op.drop_column("removals", "store")
    op.drop_column("journals", "store")
    op.drop_column("packs", "store")
    for name in ("moved", "source", "store"):
        op.drop_column("buckets", name)
