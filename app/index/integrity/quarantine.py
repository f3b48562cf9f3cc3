"""The quarantine of damaged blobs."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select

from sluice_s3.app.index.schema import tables
from sluice_s3.app.index.sql.builder import excluded, text, upsertion
from sluice_s3.app.index.sql.transaction import Statement, Transaction, now_ms

QUARANTINE = Statement(select(tables.quarantine.c.locator, tables.quarantine.c.reason, tables.quarantine.c.found))
ADD_QUARANTINE = upsertion(tables.quarantine, ("locator",), excluded("reason"))
REMOVE_QUARANTINE = Statement(delete(tables.quarantine).where(tables.quarantine.c.locator == text("damaged")))


def quarantine() -> Transaction[list[tuple[str, str, int]]]:
    """Return damaged blobs as (locator, reason, milliseconds since the epoch)."""
    return [tuple(row) for row in (yield QUARANTINE, ())]


def add_quarantine(locator: str, reason: str) -> Transaction[None]:
    """Quarantine a damaged blob."""
    yield ADD_QUARANTINE, (locator, reason, now_ms())


def remove_quarantine(locators: Sequence[str]) -> Transaction[None]:
    """Remove blobs from quarantine that are intact or deleted."""
    yield REMOVE_QUARANTINE, [(locator,) for locator in locators]
