"""Runs all checks, each within a time, once for all who ask at about the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from sluice_s3.app.admin.overview.checks import (
    Sources,
    check_certificate,
    check_deaths,
    check_interpreter,
    check_keys,
    check_log,
    check_notifications,
)
from sluice_s3.app.admin.overview.models import Finding
from sluice_s3.app.admin.overview.store_checks import check_store
from sluice_s3.app.admin.store_health.models import StoreHealthOut
from sluice_s3.app.admin.store_health.timed_part import TimedPart

Check = Callable[[Sources], Awaitable[list[Finding]]]

CHECKS: dict[str, Check] = {
    "TLS certificate": check_certificate,
    "interpreter": check_interpreter,
    "the index's log": check_log,
    "processes that died": check_deaths,
    "notifications": check_notifications,
    "access keys": check_keys,
}
"""The checks of what is no store, by what they look at. A check raises DomainError or TimeoutError when it cannot."""
FRESH_SECONDS = 5.0
"""Seconds for which findings are not looked for again."""
GRAVITY = ("error", "warning", "notice")
MAX_FINDINGS = 200


class Attention:
    """What needs attention now."""

    def __init__(self, sources: Sources, checks: dict[str, Check] | None = None) -> None:
        self._sources = sources
        self._parts = {name: self._make_part(check) for name, check in (checks or CHECKS).items()}

    def _make_part(self, check: Check) -> TimedPart[list[Finding]]:
        return TimedPart(lambda: check(self._sources), fresh=FRESH_SECONDS)

    async def close(self) -> None:
        """End checks that run."""
        await asyncio.gather(*(part.close() for part in self._parts.values()))

    async def look(self, stores: Sequence[StoreHealthOut]) -> tuple[list[Finding], list[str]]:
        """Return the findings, the gravest first, and what could not be checked."""
        parts = await asyncio.gather(*(part.get() for part in self._parts.values()))
        found = [one for part in parts for one in part.value or ()]
        unchecked = [name for name, part in zip(self._parts, parts, strict=True) if part.silent_since is not None]
        for store in stores:
            min_free = self._sources.settings.named_stores[store.name].min_free
            found += check_store(store, min_free)
            silent = {
                "space": store.space.silent_since,
                "journals": store.journals.silent_since,
                "damaged data": store.scrub.silent_since,
            }
            unchecked += [f"{what} of {store.name}" for what, since in silent.items() if since is not None]
        found.sort(key=lambda one: (GRAVITY.index(one.severity), one.kind, one.subject))
        return found[:MAX_FINDINGS], unchecked
