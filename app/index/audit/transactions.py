"""Audit events: added beside the changes that they describe, read newest first, removed when they are old."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.app.index.audit.rows import AuditEvent, AuditFilter, AuditPage, NewAuditEvent, Position
from sluice_s3.app.index.audit.statements import (
    ADD_EVENT,
    COUNT_CHANGES,
    COUNT_REFUSALS,
    EVENTS,
    OLD_EVENTS,
    OLDEST_CHANGES,
    OLDEST_REFUSALS,
    REMOVE_EVENT,
)
from sluice_s3.app.index.sql.transaction import Draw, Transaction, now_ms

BATCH = 500
"""Rows that a query reads at a time."""
MOST_READ = 50_000
"""Rows that one query reads at most. It then returns what it found, and where to go on."""
MOST_REMOVED = 1000
"""Events that one transaction removes at most."""


def add_audit_events(new: Sequence[NewAuditEvent]) -> Transaction[None]:
    """Add events, at the current time."""
    first = yield Draw(len(new))
    at = now_ms()
    yield ADD_EVENT, [(number, at, *event) for number, event in enumerate(new, first)]


def audit_events(wanted: AuditFilter, after: Position | None, limit: int) -> Transaction[AuditPage]:
    """Return the newest events of a filter, at most `limit`, and where the next page begins."""
    # one that begins within the last millisecond of the filter
    place = Position(wanted.until + 1, 0) if after is None or after.at > wanted.until else after
    found: list[AuditEvent] = []
    for _ in range(MOST_READ // BATCH):
        rows = yield EVENTS, (wanted.since, *place, BATCH)
        for row in rows:
            event = AuditEvent._make(row)
            place = Position(event.at, event.id)
            if wanted.matches(event):
                found.append(event)
                if len(found) == limit:
                    return AuditPage(found, place)
        if len(rows) < BATCH:
            return AuditPage(found, None)
    return AuditPage(found, place)


def old_audit_events(until: int, most_changes: int, most_refusals: int) -> Transaction[list[int]]:
    """Return some of the events to remove.

    They are from before `until` (milliseconds), or the oldest of too many. Changes and refused ones are counted apart,
    so that nobody can displace the record of changes by attempts.
    """
    rows = yield OLD_EVENTS, (until, MOST_REMOVED)
    for count, oldest, most in (
        (COUNT_CHANGES, OLDEST_CHANGES, most_changes),
        (COUNT_REFUSALS, OLDEST_REFUSALS, most_refusals),
    ):
        if rows:
            break
        surplus = (yield count, ())[0][0] - most
        if surplus > 0:
            rows = yield oldest, (min(surplus, MOST_REMOVED),)
    return [row[0] for row in rows]


def forget_audit_events(ids: Sequence[int]) -> Transaction[None]:
    """Remove events."""
    yield REMOVE_EVENT, [(number,) for number in ids]
