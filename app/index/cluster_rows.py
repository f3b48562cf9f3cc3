"""Rows of several gateways on one index: heartbeats and leases."""

from __future__ import annotations

from typing import NamedTuple


class Beat(NamedTuple):
    """The last heartbeat of a writer; see `app.index.postgres.heartbeat`."""

    incarnation: int
    state: str
    number: int
    settled: int
    """The number of a heartbeat: every request that runs in the writer's server began after it."""


class Lease(NamedTuple):
    """The exclusive right of one writer to run a job.

    It ends with the writer or with its release.
    """

    name: str
    holder: int
    term: int
