"""What the admin process watches all the time, for the overview and the stores of the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

from sluice_s3.app.admin.overview.attention import Attention
from sluice_s3.app.admin.overview.checks import Server, Sources
from sluice_s3.app.admin.overview.sampler import Counted, Counts, Sampler
from sluice_s3.app.admin.store_health.health import StoresHealth
from sluice_s3.app.admin.store_health.watch import States
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.store import Store


class MonitoredProcesses(Server, Protocol):
    """The processes of the server, as far as they are watched."""

    @property
    def counters(self) -> Counted:
        """Counters of all processes."""
        ...

    def read_buckets(self) -> Mapping[str, Counts] | None:
        """Return what all processes counted of each bucket; None where that is off."""
        ...

    def states_of(self, name: str) -> list[tuple[str, int, int, int]]:
        """Return a store's condition, running and stuck calls, and bytes in memory, per process."""
        ...


class Monitoring:
    """Samples of the counters, the health of the stores, and what needs attention."""

    def __init__(self, store: Store, settings: Settings, processes: MonitoredProcesses) -> None:
        self.sampler = Sampler(processes.counters, processes.read_buckets)
        self.health = StoresHealth(store, settings, cast(States, processes.states_of))
        self.attention = Attention(Sources(store.index, settings, processes))

    async def start(self) -> None:
        """Start to watch."""
        await self.sampler.start()
        await self.health.start()

    async def stop(self) -> None:
        """Stop; nothing that hangs is waited for."""
        await self.attention.close()
        await self.health.stop()
        await self.sampler.stop()
