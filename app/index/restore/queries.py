"""The archived versions that are to be checked by now."""

from __future__ import annotations

from sluice_s3.app.index.restore.state import PREFIX, DueRestore, restore_meta_value
from sluice_s3.app.index.sql.dialect import Query, SqlDialect
from sluice_s3.app.index.sql.transaction import Transaction


def _render_due(dialect: SqlDialect) -> str:
    return f"""
    SELECT name, value FROM meta WHERE name >= '{PREFIX}' AND name < '{PREFIX[:-1]};' AND value <= {dialect.text("now")}
    ORDER BY value, name LIMIT {dialect.number("limit")}
    """  # noqa: S608 - constants


DUE = Query(_render_due)


def due_restores(now: int, limit: int) -> Transaction[list[DueRestore]]:
    """Return the archived versions that are due by now, at most `limit`."""
    rows = yield DUE.bind(now=restore_meta_value(now), limit=limit)
    due = []
    for name, value in rows:
        bucket_id, version_id, key = name.removeprefix(PREFIX).split(":", 2)
        due.append(DueRestore(name, value, int(bucket_id), version_id, key))
    return due
