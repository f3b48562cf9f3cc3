"""The part of the index seam for several gateways on one index: leases, and requests of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol


class Beat(NamedTuple):
    """The last sign of life of a writer; see `app.index.heart`."""

    incarnation: int
    state: str
    number: int
    settled: int
    """Every request that runs where the writer is began after that sign."""


class Lease(NamedTuple):
    """The right of one writer to do what only one may; it ends with the writer, or when that leaves it."""

    name: str
    holder: int
    term: int


class Gateways(Protocol):
    """See `app.index.base.Index`, which this is a part of."""

    @property
    def many_hosts(self) -> bool:
        """Gateways of other hosts may use this index: locks of the kernel tell nothing of them."""
        ...

    def across(self, oldest: Callable[[], int]) -> Callable[[], int]:
        """`oldest` tells when the oldest request began that runs in this server; the answer tells it of all servers.

        Both in milliseconds of CLOCK_BOOTTIME: no request that began before it runs.
        """
        ...

    async def take_lease(self, name: str) -> Lease | None:
        """The lease of that name; None while a writer that is live holds it."""
        ...

    async def holds_lease(self, lease: Lease) -> bool:
        """Whether nobody else has taken it. What must not happen otherwise is committed `app.index.leased.under` it."""
        ...

    async def leave_lease(self, lease: Lease) -> None:
        """Let somebody else have it."""
        ...
