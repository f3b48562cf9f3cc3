"""Buckets with versioning.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

from importlib import import_module

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

NUMBER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
OTHERS = sa.text("state != 1")
NULLS = sa.text("state != 1 AND version_id = 'null'")

# the functions of Postgres leave such buckets to the transactions
VERSIONED = """WHEN (SELECT buckets.versioning FROM buckets WHERE buckets.id = given.bucket_id) != 0 THEN 'versions'
                """
BEFORE = ("WHEN given.match IS NOT NULL AND old.seq IS NULL THEN 'key'", "WHEN old.seq IS NULL THEN 'key'")


def _functions(*, versions: bool) -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    first = import_module("sluice_s3.migrations.versions.0005_postgres")
    for function, before in zip((first.PUT, first.DELETE), BEFORE, strict=True):
        made = function.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
        op.execute(made.replace(before, VERSIONED + before, 1) if versions else made)


def upgrade() -> None:
    """Add the columns and indexes.

    Existing buckets are unversioned, with current versions only.
    """
    op.add_column("buckets", sa.Column("versioning", NUMBER, server_default="0", nullable=False))
    op.add_column("removals", sa.Column("version_id", TEXT, server_default="null", nullable=False))
    op.drop_index("versions_others", "versions")
    others: list[str | sa.TextClause] = ["bucket_id", "key", sa.text("modified DESC"), "state"]
    op.create_index("versions_others", "versions", others, sqlite_where=OTHERS, postgresql_where=OTHERS)
    op.create_index("versions_null", "versions", ["bucket_id", "key"], sqlite_where=NULLS, postgresql_where=NULLS)
    _functions(versions=True)


def downgrade() -> None:
    """Drop the columns and indexes.

    Only for an index without older versions: those would reappear.
    """
    _functions(versions=False)
    op.drop_index("versions_null", "versions")
    op.drop_index("versions_others", "versions")
    others = ["bucket_id", "key", "seq", "state"]
    op.create_index("versions_others", "versions", others, sqlite_where=OTHERS, postgresql_where=OTHERS)
    op.drop_column("removals", "version_id")
    op.drop_column("buckets", "versioning")
