"""Keys that have not exactly one newest version: what fsck asks, and how it is set right."""

from __future__ import annotations

from app.index.schema import CURRENT, MARKER, NONCURRENT, OLD_MARKER
from app.index.steps import Transaction
from app.index.version_statements import SET_STATE
from app.index.words import Query, Words

WRONG = Query("""
    SELECT versions.bucket_id, versions.key, buckets.name, buckets.store
    FROM versions JOIN buckets ON buckets.id = versions.bucket_id
    GROUP BY versions.bucket_id, versions.key, buckets.name, buckets.store
    HAVING sum(CASE WHEN state IN (1, 2) THEN 1 ELSE 0 END) != 1
    OR max(modified) != max(CASE WHEN state IN (1, 2) THEN modified ELSE 0 END)
    ORDER BY versions.bucket_id, versions.key
""")


def _of_key(words: Words) -> str:
    return f"""
    SELECT seq, state, etag FROM versions WHERE bucket_id = {words.number("bucket")} AND key = {words.text("name")}
    ORDER BY modified DESC, seq DESC
    """  # noqa: S608 - constants


OF_KEY = Query(_of_key)

Wrong = tuple[int, str, str, str]
"""Id of the bucket, key, name of the bucket, and its store."""


def wrong() -> Transaction[list[Wrong]]:
    """Keys without a newest version, with several, or whose newest is not the one made last. Reads all versions."""
    found: list[Wrong] = yield WRONG.given()
    return found


def mend(bucket_id: int, key: str) -> Transaction[None]:
    """Let the version that was made last be the newest of its key, and no other."""
    rows = yield OF_KEY.given(bucket=bucket_id, name=key)
    wanted = [(seq, state, _state(etag, newest=number == 0)) for number, (seq, state, etag) in enumerate(rows)]
    for seq, state, right in reversed(wanted):  # the newest last: on Postgres there are never two
        if state != right:
            yield SET_STATE, (right, seq)


def _state(etag: str, *, newest: bool) -> int:
    if newest:
        return CURRENT if etag else MARKER
    return NONCURRENT if etag else OLD_MARKER
