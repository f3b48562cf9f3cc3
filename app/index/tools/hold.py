"""A backup's hold on the removal of discarded bodies, for either engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

from sluice_s3.app.index.engine.removal_hold import RemovalHold


@asynccontextmanager
async def hold_removals(run_dir: Path, url: str | None) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Hold removals in all gateways of the index at `url`, or of the SQLite index of `run_dir`.

    Yields a function to call now and then, and before the result counts: it raises StoreUnavailable once the hold is
    lost. Raises Overloaded while another backup has it, DomainError, OSError.
    """
    if url is not None:
        from sluice_s3.app.index.postgres import removal_hold  # it needs an extra

        async with removal_hold.hold(url) as check:
            yield check
        return
    with closing(RemovalHold(run_dir)):
        yield _keep


async def _keep() -> None:
    """Do nothing: the kernel keeps a file lock as long as this process lives."""
