"""Leader election for jobs that only one process may run.

On one host the kernel decides, across hosts the index.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import monotonic
from typing import Protocol

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.cluster.rows import Lease
from sluice_s3.app.index.engine.fencing import with_lease
from sluice_s3.app.index.interface import Index
from sluice_s3.app.private_files import open_file

logger = logging.getLogger("sluice.jobs")

RETRY_SECONDS = 2.0
"""Seconds between attempts at a lease of another process. Most processes do only that."""
LOCK_RETRY_SECONDS = 0.5
"""Seconds between attempts at a lock of another process: every job asks for it each second."""


class Leadership(Protocol):
    """The right to run a job that only one process may run."""

    async def try_acquire(self) -> bool:
        """Take leadership if it is free; return whether this process has it. Raises DomainError."""
        ...

    def fence(self) -> AbstractContextManager[None]:
        """Make commits within fail once another process is the leader."""
        ...

    @property
    def can_release(self) -> bool:
        """Whether a process of another gateway can take over after `release`."""
        ...

    async def release(self) -> None:
        """Release leadership. Everything done under it must have ended."""
        ...


class FlockElection:
    """One file lock for all jobs: the kernel releases it when the process dies."""

    many_hosts = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: int | None = None
        self._failing = False
        """Whether the last attempt raised OSError: logged once, not each second."""
        self._retry_at = 0.0

    def get_leadership(self, _: str) -> Leadership:
        """Return the leadership of that name, here the same for all names."""
        return self

    async def try_acquire(self) -> bool:
        """See `Leadership.try_acquire`."""
        if self._lock is None and monotonic() >= self._retry_at:
            try:
                self._lock = self._try_lock()
            except OSError as error:  # such as EMFILE: other loops and other processes try again each second
                if not self._failing:
                    logger.warning("jobs: the lock file cannot be used, to be tried again: %s", error.strerror)
                self._failing = True
                return False
            self._failing = False
        return self._lock is not None

    def _try_lock(self) -> int | None:
        """Return the descriptor of the locked file; None while another process has the lock.

        Raises OSError.
        """
        descriptor = open_file(self._path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            self._retry_at = monotonic() + LOCK_RETRY_SECONDS
            return None
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def fence(self) -> AbstractContextManager[None]:
        """Do nothing: a process that lost the lock is dead."""
        return nullcontext()

    can_release = False

    async def release(self) -> None:
        """Do nothing: other loops of this process use the lock, too."""

    async def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class LeaseElection:
    """A lease in the index for each name."""

    many_hosts = True

    def __init__(self, index: Index) -> None:
        self._index = index
        self._leaderships: dict[str, LeaseLeadership] = {}

    def get_leadership(self, name: str) -> Leadership:
        """Return the leadership of that name."""
        return self._leaderships.setdefault(name, LeaseLeadership(self._index, name))

    async def close(self) -> None:
        """Release all leases.

        One that cannot be released passes on when this process is declared dead.
        """
        for leadership in self._leaderships.values():
            try:
                await leadership.release()
            except DomainError:
                return


class LeaseLeadership:
    """Leadership by one lease.

    The index checks it at each use, and again in every transaction.
    """

    can_release = True

    def __init__(self, index: Index, name: str) -> None:
        self._index = index
        self._name = name
        self._lease: Lease | None = None
        self._lock = asyncio.Lock()
        self._retry_at = 0.0

    async def try_acquire(self) -> bool:
        """See `Leadership.try_acquire`."""
        async with self._lock:  # with two loops of one name: each acquisition ends the term before
            if self._lease is not None and not await self._index.holds_lease(self._lease):
                self._lease = None
                return False  # work under it must end first
            if self._lease is None and monotonic() >= self._retry_at:
                self._lease = await self._index.take_lease(self._name)
                if self._lease is None:
                    self._retry_at = monotonic() + RETRY_SECONDS
            return self._lease is not None

    def fence(self) -> AbstractContextManager[None]:
        """See `Leadership.fence`."""
        return nullcontext() if self._lease is None else with_lease(self._lease)

    async def release(self) -> None:
        """See `Leadership.release`."""
        lease, self._lease = self._lease, None
        if lease is not None:
            await self._index.release_lease(lease)


Election = FlockElection | LeaseElection
