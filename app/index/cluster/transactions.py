"""Several gateways on one index: heartbeats of their writers, and leases for exclusive jobs.

A lease moves only when its holder left it or was declared dead (law 5). No clock is involved. Each take raises the
term, so a former holder finds inside its transaction that it has lost the lease.
"""

from __future__ import annotations

from sluice_s3.app.errors import LeaseLost
from sluice_s3.app.index.cluster.rows import Beat, Lease
from sluice_s3.app.index.cluster.statements import (
    ADD_LEASE,
    BEAT,
    BEATS,
    LEASE,
    LEASE_FOR_SHARE,
    LEASE_FOR_UPDATE,
    RELEASE_LEASE,
    RELEASE_LEASES,
    REMOVE_BEATS,
    SET_LEASE,
)
from sluice_s3.app.index.sql.transaction import Transaction

LIVE = "live"
"""`writers.state` of a writer that may commit."""


def is_free(incarnation: int, name: str) -> Transaction[bool]:
    """Return whether a writer could take the lease of that name."""
    rows = yield LEASE, (name,)
    return not rows or rows[0][2] != LIVE or rows[0][0] == incarnation


def take_lease(incarnation: int, name: str) -> Transaction[Lease | None]:
    """Take a lease for a writer.

    Returns None while another live writer holds it.
    """
    rows = yield LEASE_FOR_UPDATE, (name,)
    if not rows:
        yield ADD_LEASE, (name, incarnation, 1)
        return Lease(name, incarnation, 1)
    holder, term, state = rows[0]
    if state == LIVE and holder != incarnation:
        return None
    yield SET_LEASE, (incarnation, term + 1, name)
    return Lease(name, incarnation, term + 1)


def holds_lease(lease: Lease) -> Transaction[bool]:
    """Return whether the lease is still held.

    Transactions that depend on it commit in `engine.fencing.with_lease`.
    """
    rows = yield LEASE, (lease.name,)
    return bool(rows) and tuple(rows[0][:2]) == (lease.holder, lease.term)


def release_lease(lease: Lease) -> Transaction[None]:
    """Release a lease, so that another writer can take it."""
    yield RELEASE_LEASE, tuple(lease)


def check_lease(lease: Lease) -> Transaction[None]:
    """Raise LeaseLost unless the lease is still held.

    No other writer can take it before this transaction ends.
    """
    if not (yield LEASE_FOR_SHARE, tuple(lease)):
        raise LeaseLost(name=lease.name)


def beat(incarnation: int, number: int, settled: int) -> Transaction[list[Beat]]:
    """Write a heartbeat, and return those of all writers."""
    yield BEAT, (incarnation, number, settled)
    return (yield from beats())


def beats() -> Transaction[list[Beat]]:
    """Return the last heartbeat of every writer.

    The number is 0 for a writer without one.
    """
    return [Beat._make(row) for row in (yield BEATS, ())]


def forget(incarnation: int) -> Transaction[None]:
    """Remove the heartbeat and the leases of a writer that is being removed."""
    yield REMOVE_BEATS, (incarnation,)
    yield RELEASE_LEASES, (incarnation,)
