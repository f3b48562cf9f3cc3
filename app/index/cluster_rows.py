"""Rows of several gateways on one index: heartbeats and leases."""

from __future__ import annotations

from typing import NamedTuple


class Beat(NamedTuple):
    """The last heartbeat of a writer; see `app.index.postgres.heartbeat`."""

    incarnation: int
    state: str
    number: int
    settled: int
    """Every request that runs where the writer is began after that beat."""


class Lease(NamedTuple):
    """The right of one writer to run a job alone; it ends with the writer or its release."""

    name: str
    holder: int
    term: int
