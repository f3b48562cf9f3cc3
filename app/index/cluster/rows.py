"""Rows of the writers of one index: incarnations, id ranges, heartbeats and leases."""

from __future__ import annotations

from typing import NamedTuple


class Writer(NamedTuple):
    """A writer incarnation: one life of one worker process."""

    incarnation: int
    state: str
    """`live` or `dead`."""
    lock_name: str
    """The lock file in the run directory, which the process keeps locked while it lives."""


class IdRange(NamedTuple):
    """A range of blob ids, `first` to `last` (inclusive), reserved by a writer incarnation."""

    incarnation: int
    first: int
    last: int


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
