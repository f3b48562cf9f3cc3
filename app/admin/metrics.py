"""Metrics read from the index and the stores at each scrape. Sizes are bytes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from sluice_s3.app.admin.stores import USAGE_TIMEOUT_SECONDS
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.packs.rows import Pack
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.store import Store

HELP = {
    "sluice_undecided_seconds": "Age of the oldest change that is not written down beside the data yet.",
    "sluice_undecided_changes": "Changes that are not written down beside the data yet.",
    "sluice_discarded_blobs": "Replaced and deleted blobs whose space is not freed yet.",
    "sluice_discarded_seconds": "Time since the first of these was replaced or deleted.",
    "sluice_damaged_blobs": "Blobs in quarantine: reading them answers 503.",
    "sluice_packs": "Packs: files of many small blobs.",
    "sluice_pack_bytes": "Bytes of packs: that may be held, and that no row holds (some came back as holes).",
    "sluice_store_up": "Whether the store answers.",
    "sluice_store_down_processes": "Processes in which the store is out of service.",
    "sluice_store_writable": "Whether the store takes writes, in every process.",
    "sluice_store_running_calls": "Blocking calls on the store that run now.",
    "sluice_store_stuck_calls": "Those that run for longer than `hang_timeout`.",
    "sluice_store_memory_bytes": "Small objects in the memory that all processes share (`read_cache`).",
    "sluice_store_bytes": "Size of the store's filesystem.",
    "sluice_store_free_bytes": "Space left on the store's filesystem.",
    "sluice_store_free_inodes": "Inodes left on the store's filesystem, 0 where it does not count them.",
    "sluice_store_buckets": "Buckets whose data is on the store.",
}
"""All are gauges, with the label `store`."""

Sample = tuple[str, str, float]
"""Name, further labels, value."""


States = Callable[[str], list[tuple[str, int, int, int]]]
"""Condition, running and stuck calls, and bytes in memory, of a store in every process."""


class JournalLags:
    """How long the changes of each store have not been journaled, as far as scrapes have seen it.

    A change may have a Last-Modified of long ago, as what is copied from elsewhere or tagged again has. So the time
    counts from when journals were last seen to be complete, or to get on, if that is later.
    """

    def __init__(self) -> None:
        self._since: dict[str, tuple[int, float]] = {}
        """The watermark of each store, and when it was first seen."""

    def seconds(self, store: str, changes: int, oldest_ms: int, watermark: int) -> float:
        """Return the age of the oldest change in seconds, 0 without one."""
        now = time.time()
        if not changes or self._since.get(store, (None, 0.0))[0] != watermark:
            self._since[store] = (watermark, now)
        return max(now - max(oldest_ms / 1000, self._since[store][1]), 0.0) if changes else 0.0


async def store_samples(store: Store, states_of: States, lags: JournalLags) -> bytes:
    """Return the gauges of every store in the text format of Prometheus."""
    index = store.index
    packs, used, damaged = await index.packs(), await index.stores_in_use(), await index.quarantine()
    found: dict[str, list[str]] = {name: [] for name in HELP}
    for one in store.all.values():
        samples: list[Sample] = [
            ("sluice_damaged_blobs", "", sum(store_of_locator(locator) == one.name for locator, _, _ in damaged)),
            ("sluice_store_buckets", "", used.get(one.name, 0)),
            *await _journal_lag_samples(one, lags),
            *await _discard_samples(one),
            *await _pack_samples(one, [pack for pack in packs if pack.store == one.name]),
            *await _usage(one),
            *_calls(states_of(one.name)),
        ]
        for name, labels, value in samples:
            found[name].append(f'{name}{{store="{one.name}"{labels}}} {value:.10g}')
    return "".join(f"# HELP {name} {HELP[name]}\n# TYPE {name} gauge\n{_lines(found[name])}" for name in HELP).encode()


def _lines(lines: Iterable[str]) -> str:
    return "".join(line + "\n" for line in lines)


async def _journal_lag_samples(store: Store, lags: JournalLags) -> list[Sample]:
    """Return the changes that are not journaled: what `sluice rebuild` could not restore."""
    changes, oldest, watermark = await store.index.journal_lag(store.name)
    seconds = lags.seconds(store.name, changes, oldest, watermark)
    return [("sluice_undecided_seconds", "", round(seconds, 3)), ("sluice_undecided_changes", "", changes)]


async def _discard_samples(store: Store) -> list[Sample]:
    """Return what waits for the garbage collector."""
    blobs, oldest = await store.index.discard_backlog(store.name)
    seconds = max(time.time() - oldest / 1000, 0.0) if blobs else 0.0
    return [("sluice_discarded_seconds", "", round(seconds, 3)), ("sluice_discarded_blobs", "", blobs)]


async def _pack_samples(store: Store, packs: list[Pack]) -> list[Sample]:
    """Return the number of packs, and their live bytes."""
    dead = sum(pack.dead for pack in packs)
    size = sum(pack.size for pack in packs if pack.sealed)
    try:
        async with asyncio.timeout(USAGE_TIMEOUT_SECONDS):
            for pack in packs:
                size += 0 if pack.sealed else await store.pack_bytes(pack.id)
    except (DomainError, TimeoutError):
        pass  # `sluice_store_up` says so
    return [
        ("sluice_packs", "", len(packs)),
        ("sluice_pack_bytes", ',state="live"', max(size - dead, 0)),
        ("sluice_pack_bytes", ',state="dead"', dead),
    ]


def _calls(states: list[tuple[str, int, int, int]]) -> list[Sample]:
    return [
        ("sluice_store_down_processes", "", sum(condition == "down" for condition, _, _, _ in states)),
        ("sluice_store_writable", "", all(condition == "up" for condition, _, _, _ in states)),
        ("sluice_store_running_calls", "", sum(running for _, running, _, _ in states)),
        ("sluice_store_stuck_calls", "", sum(stuck for _, _, stuck, _ in states)),
        ("sluice_store_memory_bytes", "", max((held for _, _, _, held in states), default=0)),
    ]


async def _usage(store: Store) -> list[Sample]:
    usage = await store.usage(USAGE_TIMEOUT_SECONDS)
    if usage is None:
        return [("sluice_store_up", "", 0)]
    return [
        ("sluice_store_up", "", 1),
        ("sluice_store_bytes", "", usage.total),
        ("sluice_store_free_bytes", "", usage.free),
        ("sluice_store_free_inodes", "", usage.free_inodes),
    ]
