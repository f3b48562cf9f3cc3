"""Lines of access logs, until they are written to objects."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.app.index.logging.rows import Lines, Waiting
from sluice_s3.app.index.logging.statements import ADD_LINES, LINES, REMOVE_LINES, WAITING_BUCKETS
from sluice_s3.app.index.sql.transaction import Draw, Transaction, now_ms


def add_log_lines(collected: Sequence[tuple[int, str, str]]) -> Transaction[None]:
    """Add lines of access logs: for each bucket its id, its name and the lines."""
    first = yield Draw(len(collected))
    at = now_ms()
    yield (
        ADD_LINES,
        [(number, bucket_id, name, at, lines) for number, (bucket_id, name, lines) in enumerate(collected, first)],
    )


def waiting_logs() -> Transaction[list[Waiting]]:
    """Return the buckets with waiting lines."""
    return [Waiting._make(row) for row in (yield WAITING_BUCKETS, ())]


def log_lines(bucket_id: int, limit: int) -> Transaction[list[Lines]]:
    """Return the oldest waiting lines of a bucket."""
    return [Lines._make(row) for row in (yield LINES, (bucket_id, limit))]


def forget_log_lines(ids: Sequence[int]) -> Transaction[None]:
    """Remove lines that were written."""
    yield REMOVE_LINES, [(number,) for number in ids]
