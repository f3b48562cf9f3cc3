"""Operations: recently committed groups.

On Postgres also its commit sequence and its functions.

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

# Takes locks first, and in one order: the global lock, then those of keys. A read after the locks sees what their last
# holders left, because each statement of a volatile function sees everything committed before it (READ COMMITTED)
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
    number := nextval('commit_sequence');
    INSERT INTO operations VALUES (operation, at, number);
    state := coalesce((SELECT writers.state FROM writers WHERE writers.incarnation = who FOR SHARE), '');
    RETURN NEXT;
END $$
"""

# Whole groups of the two most frequent changes in one call, each key once. They do the same as
# app/index/objects/transactions.py, except for shared bodies and plain files, which they leave to it (`slow`). Each
# entry gets two numbers. The settings are for cached plans: one that was made when the tables were small must not scan
# them when they have grown
SETTINGS = "SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off"
ALIVE = """
    SELECT begun.number << 20, begun.state INTO first, state
        FROM sluice_begin(operation, at, everything, false, who, locks) AS begun;
    IF who != 0 AND state != 'live' THEN
        RAISE EXCEPTION 'dead' USING ERRCODE = 'SL001';
    END IF;
"""
SLOW = "old.body != '' AND (old.body ~ '^([^/]*/)?t:' OR EXISTS (SELECT FROM shared WHERE shared.body = old.body))"
PUT = f"""
CREATE FUNCTION sluice_put(
    operation bigint, at bigint, everything bigint, who bigint, locks bigint[],
    bucket_ids bigint[], keys text[], sizes bigint[], etags text[], headers text[], storage_classes text[],
    algorithms text[], types text[], checksums text[], bodies text[], parts bigint[], owners text[],
    matches text[], none_matches boolean[]
) RETURNS TABLE (made bigint, modified bigint, failed text) LANGUAGE plpgsql {SETTINGS} AS $$
#variable_conflict use_column
DECLARE
    first bigint;
    state text;
BEGIN{ALIVE}
    RETURN QUERY WITH judged AS MATERIALIZED (
        SELECT given.*, old.seq AS old_seq, old.body AS old_body,
            first + 2 * (given.place - 1) AS new_seq, greatest(at, old.modified + 1) AS new_modified,
            CASE
                WHEN NOT EXISTS (SELECT FROM buckets WHERE buckets.id = given.bucket_id) THEN 'bucket'
                WHEN given.match IS NOT NULL AND old.seq IS NULL THEN 'key'
                WHEN given.match IS NOT NULL AND given.match != '*' AND given.match != old.etag THEN 'If-Match'
                WHEN given.none_match AND old.seq IS NOT NULL THEN 'If-None-Match'
                WHEN {SLOW} THEN 'slow'
                ELSE '' END AS failed
        FROM unnest(bucket_ids, keys, sizes, etags, headers, storage_classes, algorithms, types, checksums, bodies,
                parts, owners, matches, none_matches) WITH ORDINALITY
            AS given(bucket_id, key, size, etag, headers, storage_class, algorithm, type, checksum, body, parts,
                owner_id, match, none_match, place)
        LEFT JOIN LATERAL (
            SELECT versions.seq, versions.etag, versions.modified, versions.body FROM versions
            WHERE versions.bucket_id = given.bucket_id AND versions.key = given.key AND versions.state = 1 LIMIT 1
        ) AS old ON true
    ), changed AS (
        UPDATE versions SET seq = new_seq, modified = new_modified, size = judged.size, etag = judged.etag,
            headers = judged.headers, storage_class = judged.storage_class, checksum_algorithm = judged.algorithm,
            checksum_type = judged.type, checksum = judged.checksum, body = judged.body, parts = judged.parts,
            owner_id = judged.owner_id
        FROM judged WHERE judged.failed = '' AND versions.seq = judged.old_seq
    ), added AS (
        INSERT INTO versions SELECT new_seq, bucket_id, key, 'null', 1, new_modified, size, etag, headers,
            storage_class, algorithm, type, checksum, body, parts, owner_id
        FROM judged WHERE failed = '' AND old_seq IS NULL
    ), discarded AS (
        INSERT INTO discards SELECT new_seq + 1, old_body, at
        FROM judged WHERE failed = '' AND old_body != '' AND old_body != body
    )
    SELECT new_seq, new_modified, judged.failed FROM judged ORDER BY place;
END $$
"""  # noqa: S608 - constants
DELETE = f"""
CREATE FUNCTION sluice_delete(
    operation bigint, at bigint, everything bigint, who bigint, locks bigint[], bucket_ids bigint[], keys text[]
) RETURNS TABLE (gone bigint, version_id text, modified bigint, failed text) LANGUAGE plpgsql {SETTINGS} AS $$
#variable_conflict use_column
DECLARE
    first bigint;
    state text;
BEGIN{ALIVE}
    RETURN QUERY WITH judged AS MATERIALIZED (
        SELECT given.*, old.*, first + 2 * (given.place - 1) AS number,
            CASE WHEN old.seq IS NULL THEN 'key' WHEN {SLOW} THEN 'slow' ELSE '' END AS failed
        FROM unnest(bucket_ids, keys) WITH ORDINALITY AS given(bucket_id, key, place)
        LEFT JOIN LATERAL (
            SELECT versions.seq, versions.version_id, versions.modified, versions.body FROM versions
            WHERE versions.bucket_id = given.bucket_id AND versions.key = given.key AND versions.state = 1 LIMIT 1
        ) AS old ON true
    ), removed AS (
        DELETE FROM versions USING judged WHERE judged.failed = '' AND versions.seq = judged.seq
    ), noted AS (
        INSERT INTO removals SELECT number, 'object', bucket_id, key, at, '' FROM judged WHERE failed = ''
    ), discarded AS (
        INSERT INTO discards SELECT number + 1, body, at FROM judged WHERE failed = '' AND body != ''
    )
    SELECT judged.seq, judged.version_id, judged.modified, judged.failed FROM judged ORDER BY place;
END $$
"""  # noqa: S608 - constants
FUNCTIONS = {"sluice_begin": BEGIN, "sluice_put": PUT, "sluice_delete": DELETE}


def upgrade() -> None:
    """Create the table, and on Postgres the sequence and the functions."""
    op.create_table(
        "operations",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("at", NUMBER, nullable=False),
        sa.Column("number", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE SEQUENCE commit_sequence")
        for made in FUNCTIONS.values():
            op.execute(made)


def downgrade() -> None:
    """Drop them.

    On Postgres this loses the commit sequence.
    """
    if op.get_bind().dialect.name == "postgresql":
        for name in reversed(FUNCTIONS):
            op.execute(f"DROP FUNCTION {name}")
        op.execute("DROP SEQUENCE commit_sequence")
    op.drop_table("operations")
