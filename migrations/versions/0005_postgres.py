"""Operations: groups of changes that were committed of late. On Postgres also its commit sequence and its functions.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

NUMBER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")

# Locks first, and in one order: that of all changes, then those of keys. What is read after them is what their last
# holder left, because each statement of a volatile function sees all that was committed before it (READ COMMITTED)
BEGIN = """
CREATE FUNCTION sluice_begin(operation bigint, at bigint, everything bigint, alone boolean, who bigint, keys bigint[])
RETURNS TABLE (number bigint, state text) LANGUAGE plpgsql AS $$
DECLARE
    locked bigint;
BEGIN
    IF alone THEN
        PERFORM pg_advisory_xact_lock(everything);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(everything);
    END IF;
    FOREACH locked IN ARRAY keys LOOP
        PERFORM pg_advisory_xact_lock(locked);
    END LOOP;
    INSERT INTO operations VALUES (operation, at);
    RETURN QUERY SELECT nextval('commit_sequence'), coalesce(
        (SELECT writers.state FROM writers WHERE writers.incarnation = who FOR SHARE), ''::text);
END $$
"""


def upgrade() -> None:
    """Make the table, and what only Postgres has."""
    op.create_table(
        "operations",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("at", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE SEQUENCE commit_sequence")
        op.execute(BEGIN)


def downgrade() -> None:
    """Take them away. On Postgres this loses the commit sequence."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION sluice_begin")
        op.execute("DROP SEQUENCE commit_sequence")
    op.drop_table("operations")
