"""Metrics that are read from the index at the scrape."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from app.index import Index


async def undecided(index: Index) -> bytes:
    """What a lost index would lose of what it decided (the window of `sluice rebuild`), and what is damaged."""
    changes, oldest = await index.undecided()
    seconds = max(time.time() - oldest / 1000, 0.0) if changes else 0.0
    lines = (
        "# HELP sluice_undecided_seconds Age of the oldest change that is not written down beside the data yet.",
        "# TYPE sluice_undecided_seconds gauge",
        f"sluice_undecided_seconds {seconds:.3f}",
        "# HELP sluice_undecided_changes Changes that are not written down beside the data yet.",
        "# TYPE sluice_undecided_changes gauge",
        f"sluice_undecided_changes {changes}",
        "# HELP sluice_damaged_blobs Blobs in quarantine: reading them answers 503.",
        "# TYPE sluice_damaged_blobs gauge",
        f"sluice_damaged_blobs {len(await index.quarantine())}",
    )
    return ("\n".join(lines) + "\n").encode()


async def of_packs(index: Index, size_of: Callable[[int], Awaitable[int]]) -> bytes:
    """How many packs there are, and how much of them lives; `size_of` gives the bytes of one that is still written."""
    packs = await index.packs()
    dead = sum(pack.dead for pack in packs)
    size = sum([pack.size if pack.sealed else await size_of(pack.id) for pack in packs])
    lines = (
        "# HELP sluice_packs Packs: files of many small blobs.",
        "# TYPE sluice_packs gauge",
        f"sluice_packs {len(packs)}",
        "# HELP sluice_pack_bytes Bytes of packs: that may be held, and that no row holds (some came back as holes).",
        "# TYPE sluice_pack_bytes gauge",
        f'sluice_pack_bytes{{state="live"}} {max(size - dead, 0)}',
        f'sluice_pack_bytes{{state="dead"}} {dead}',
    )
    return ("\n".join(lines) + "\n").encode()
