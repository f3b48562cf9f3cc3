"""The part of the index seam for several gateways on one index: leases, and requests of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from app.index.rows import Lease


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
