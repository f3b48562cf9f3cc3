"""Tombstones are not older than the versions they delete, also in the function of Postgres.

Revision ID: 0011
Revises: 0010
"""

from __future__ import annotations

from importlib import import_module

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

BEFORE = "INSERT INTO removals SELECT number, 'object', bucket_id, key, at, '' FROM"
AFTER = "INSERT INTO removals SELECT number, 'object', bucket_id, key, greatest(at, modified), '' FROM"


def _function(noted: str) -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    first = import_module("sluice_s3.migrations.versions.0005_postgres")
    versions = import_module("sluice_s3.migrations.versions.0008_versions")
    before = versions.BEFORE[1]
    made = first.DELETE.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
    op.execute(made.replace(before, versions.VERSIONED + before, 1).replace(BEFORE, noted, 1))


def upgrade() -> None:
    """Replace the function."""
    _function(AFTER)


def downgrade() -> None:
    """Restore the previous function."""
    _function(BEFORE)
