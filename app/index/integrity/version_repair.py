"""Keys that do not have exactly one newest version: queries and repair for fsck."""

from __future__ import annotations

from sluice_s3.app.index.schema.tables import CURRENT, MARKER, NONCURRENT, OLD_MARKER
from sluice_s3.app.index.sql.dialect import Query, SqlDialect
from sluice_s3.app.index.sql.transaction import Transaction
from sluice_s3.app.index.versioning.statements import SET_STATE

KEYS_WITH_WRONG_CURRENT = Query("""
    SELECT versions.bucket_id, versions.key, buckets.name, buckets.store
    FROM versions JOIN buckets ON buckets.id = versions.bucket_id
    GROUP BY versions.bucket_id, versions.key, buckets.name, buckets.store
    HAVING sum(CASE WHEN state IN (1, 2) THEN 1 ELSE 0 END) != 1
    OR max(modified) != max(CASE WHEN state IN (1, 2) THEN modified ELSE 0 END)
    ORDER BY versions.bucket_id, versions.key
""")


def _render_key(dialect: SqlDialect) -> str:
    return f"""
    SELECT seq, state, etag FROM versions WHERE bucket_id = {dialect.number("bucket")} AND key = {dialect.text("name")}
    ORDER BY modified DESC, seq DESC
    """  # noqa: S608 - constants


OF_KEY = Query(_render_key)

WrongCurrent = tuple[int, str, str, str]
"""Id of the bucket, key, name of the bucket, and its store."""


def keys_with_wrong_current() -> Transaction[list[WrongCurrent]]:
    """Return the keys without a newest version, with several or with a wrong one.

    Reads all versions.
    """
    keys: list[WrongCurrent] = yield KEYS_WITH_WRONG_CURRENT.bind()
    return keys


def repair_current(bucket_id: int, key: str) -> Transaction[None]:
    """Make the version that was created last the only newest one of its key."""
    rows = yield OF_KEY.bind(bucket=bucket_id, name=key)
    states = [(seq, state, _state(etag, newest=number == 0)) for number, (seq, state, etag) in enumerate(rows)]
    for seq, state, expected in reversed(states):  # the newest last, so that Postgres never sees two
        if state != expected:
            yield SET_STATE, (expected, seq)


def _state(etag: str, *, newest: bool) -> int:
    if newest:
        return CURRENT if etag else MARKER
    return NONCURRENT if etag else OLD_MARKER
