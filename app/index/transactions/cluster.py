"""Several gateways on one index: their writers' signs of life, and leases on what only one of them may do.

A lease moves only when its holder left it or was declared dead (law 5): no clock decides. Whoever held it before finds
in the transaction itself that it does not any more, since taking it raises its term.
"""

from __future__ import annotations

from sluice_s3.app.errors import LeaseLost
from sluice_s3.app.index.cluster_rows import Beat, Lease
from sluice_s3.app.index.cluster_statements import (
    ADD_LEASE,
    BEAT,
    BEATS,
    HELD_LEASE,
    LEASE,
    LEAVE_LEASE,
    LEAVE_LEASES,
    LOOK_AT_LEASE,
    REMOVE_BEATS,
    SET_LEASE,
)
from sluice_s3.app.index.sql.transaction import Transaction

LIVE = "live"
"""`writers.state` of one that may commit."""


def is_free(incarnation: int, name: str) -> Transaction[bool]:
    """Whether a writer could take the lease of that name."""
    rows = yield LOOK_AT_LEASE, (name,)
    return not rows or rows[0][2] != LIVE or rows[0][0] == incarnation


def take_lease(incarnation: int, name: str) -> Transaction[Lease | None]:
    """The lease of that name for a writer; None while another one that is live holds it."""
    rows = yield LEASE, (name,)
    if not rows:
        yield ADD_LEASE, (name, incarnation, 1)
        return Lease(name, incarnation, 1)
    holder, term, state = rows[0]
    if state == LIVE and holder != incarnation:
        return None
    yield SET_LEASE, (incarnation, term + 1, name)
    return Lease(name, incarnation, term + 1)


def holds_lease(lease: Lease) -> Transaction[bool]:
    """Tell whether nobody else has taken it. What depends on it is committed in `engine.fencing.with_lease`."""
    rows = yield LOOK_AT_LEASE, (lease.name,)
    return bool(rows) and tuple(rows[0][:2]) == (lease.holder, lease.term)


def leave_lease(lease: Lease) -> Transaction[None]:
    """Somebody else may take it."""
    yield LEAVE_LEASE, tuple(lease)


def check_lease(lease: Lease) -> Transaction[None]:
    """Raise LeaseLost when it is not held any more. Nobody can take it before this transaction ends."""
    if not (yield HELD_LEASE, tuple(lease)):
        raise LeaseLost(name=lease.name)


def beat(incarnation: int, number: int, settled: int) -> Transaction[list[Beat]]:
    """Give a sign of life, and see those of all writers."""
    yield BEAT, (incarnation, number, settled)
    return (yield from beats())


def beats() -> Transaction[list[Beat]]:
    """The last sign of life of every writer; number 0 of one that gave none yet."""
    return [Beat._make(row) for row in (yield BEATS, ())]


def forget(incarnation: int) -> Transaction[None]:
    """Remove what is kept here of a writer that is being removed."""
    yield REMOVE_BEATS, (incarnation,)
    yield LEAVE_LEASES, (incarnation,)
