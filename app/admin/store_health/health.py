"""Puts together what is known of each store: from this process's memory at once, the rest part by part."""

from __future__ import annotations

import asyncio
from functools import partial

from sluice_s3.app.admin.metrics import JournalLags
from sluice_s3.app.admin.store_health.models import (
    BreakerOut,
    CallOut,
    JournalsOut,
    LatencyOut,
    MountOut,
    PacksOut,
    ScrubOut,
    SpaceOut,
    StoreHealthOut,
    TransitionOut,
    TrialOut,
)
from sluice_s3.app.admin.store_health.parts import read_journals, read_packs, read_scrub, read_space
from sluice_s3.app.admin.store_health.timed_part import Part, TimedPart
from sluice_s3.app.admin.store_health.transitions import SEVERITY
from sluice_s3.app.admin.store_health.watch import States, StoreWatch
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.availability.circuit_breaker import Condition
from sluice_s3.app.store.availability.mount_report import report_mount
from sluice_s3.app.store.store import Store


class _Parts:
    """The parts of one store that are read from its mount or the index."""

    def __init__(self, store: Store, settings: Settings, lags: JournalLags) -> None:
        self.space: TimedPart[SpaceOut] = TimedPart(partial(read_space, store))
        self.packs: TimedPart[PacksOut] = TimedPart(partial(read_packs, store, settings))
        self.journals: TimedPart[JournalsOut] = TimedPart(partial(read_journals, store, lags))
        self.scrub: TimedPart[ScrubOut] = TimedPart(partial(read_scrub, store, settings))

    async def close(self) -> None:
        await asyncio.gather(*(part.close() for part in (self.space, self.packs, self.journals, self.scrub)))


class StoresHealth:
    """The health of all stores."""

    def __init__(self, store: Store, settings: Settings, states: States) -> None:
        self.watch = StoreWatch(store, settings, states)
        self._stores = store.all
        self._settings = settings
        self._states = states
        lags = JournalLags()
        self._parts = {name: _Parts(one, settings, lags) for name, one in store.all.items()}
        self._used: TimedPart[dict[str, int]] = TimedPart(store.index.stores_in_use)

    async def start(self) -> None:
        """Start to watch the stores."""
        await self.watch.start()

    async def stop(self) -> None:
        """Stop; nothing that hangs is waited for."""
        await self.watch.stop()
        await asyncio.gather(self._used.close(), *(parts.close() for parts in self._parts.values()))

    def __contains__(self, name: str) -> bool:
        return name in self._stores

    async def all(self) -> list[StoreHealthOut]:
        """Return everything about all stores."""
        return list(await asyncio.gather(*map(self.read, self._stores)))

    async def read(self, name: str) -> StoreHealthOut:
        """Return everything about a store."""
        store, settings, parts = self._stores[name], self._settings.named_stores[name], self._parts[name]
        has_packs = settings.path is not None and settings.layout == "objects"
        used, space, packs, journals, scrub = await asyncio.gather(
            self._used.get(), parts.space.get(), parts.packs.get(), parts.journals.get(), parts.scrub.get()
        )
        count = None if used.value is None else used.value.get(name, 0)
        return StoreHealthOut(
            name=name,
            default=name == self._settings.first_store,
            driver=settings.driver,
            layout=settings.layout,
            durability=settings.durability or "full",
            etag=store.etag_kind,
            place=str(settings.path) if settings.url is None else settings.url.partition("://")[0],
            hang_timeout=settings.hang_timeout or 0,
            mount=_render_mount(store),
            latency=self._render_latency(name),
            breaker=self.breaker(name),
            space=space,
            buckets=Part(value=count, read=used.read, silent_since=used.silent_since),
            packs=packs if has_packs else None,
            journals=journals,
            scrub=scrub,
        )

    def breaker(self, name: str) -> BreakerOut:
        """Return the state of a store in all processes. Reads memory only."""
        states = self._states(name)
        conditions = [condition for condition, _, _, _ in states]
        worst: Condition = max(conditions, key=SEVERITY.index, default="up")
        history = self.watch.transitions(name)
        last = history[-1] if history and history[-1].condition == worst else None
        return BreakerOut(
            condition=worst,
            processes=conditions.count(worst),
            of=len(conditions),
            since=None if last is None else last.at,
            reason=last.reason if last is not None else "",
            running_calls=sum(running for _, running, _, _ in states),
            stuck_calls=sum(stuck for _, _, stuck, _ in states),
            history=[TransitionOut.model_validate(one, from_attributes=True) for one in reversed(history)],
        )

    def _render_latency(self, name: str) -> LatencyOut:
        points = [(at, read, sync) for at, read, sync in self.watch.latencies(name)]
        return LatencyOut(points=points, silent_since=self.watch.silent_since(name))


def _render_mount(store: Store) -> MountOut | None:
    found = report_mount(store)
    if found is None:
        return None
    return MountOut(
        kind=found.kind,
        device=found.device,
        point=found.point,
        options=found.options,
        findings=found.line,
        trials=[TrialOut(name=name, works=works, detail=detail) for name, works, detail in found.trials],
        latencies=[CallOut(call=call, median=median, worst=worst) for call, median, worst in found.latencies],
    )
