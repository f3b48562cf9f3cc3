"""Selects what lifecycle rules make due in a bucket, page by page, without changing anything.

The job acts on this selection, and a preview shows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import NamedTuple

from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.lifecycle.queries import ScanPosition
from sluice_s3.app.index.multipart.rows import Upload
from sluice_s3.app.index.schema.tables import CURRENT, ENABLED, MARKER, OLD_MARKER
from sluice_s3.app.store.lifecycle import evaluator
from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar
from sluice_s3.app.store.lifecycle.evaluator import DueAction, LifecycleEvaluator, LifecycleVersion, Rules

UPLOADS_PER_PAGE = 1000
VERSIONS_AT_ONCE = 50
"""Versions that are judged while nothing else runs."""


class DuePage(NamedTuple):
    """What is due in a page of versions."""

    due: list[DueAction]
    versions: list[LifecycleVersion]
    """All versions of the page."""
    position: ScanPosition | None
    """Where the next page begins; None at the end."""


class LifecycleSelection:
    """The versions and uploads of a bucket that its rules make due at a time.

    `now` is that time in milliseconds, `classes` are the storage classes that have a store.
    """

    def __init__(
        self,
        index: Index,
        bucket: Bucket,
        rules: Rules,
        day: LifecycleCalendar,
        now: int,
        classes: Collection[str],
        *,
        headers: bool = False,
    ) -> None:
        """`headers`: versions have theirs even if no rule needs tags."""
        self._index = index
        self._bucket = bucket
        self._rules = rules
        self._day = day
        self._now = now
        self._classes = classes
        self._headers = headers or rules.need_tags

    async def due_versions(self, position: ScanPosition | None, end: str) -> AsyncIterator[DuePage]:
        """Yield pages of versions from a position on, before the key `end`. Raises DomainError."""
        keeps = self._bucket.versioning == ENABLED
        judge = LifecycleEvaluator(self._rules, self._day, self._now, self._classes, keeps=keeps)
        while position is not None:
            rows, position = await self._index.lifecycle_page(self._bucket.id, position, end, tags=self._headers)
            versions = [LifecycleVersion(*row) for row in rows]
            due: list[DueAction] = []
            for number, version in enumerate(versions):
                if number % VERSIONS_AT_ONCE == 0:
                    await asyncio.sleep(0)  # there may be a thousand rules
                newest, marker = version.state in (CURRENT, MARKER), version.state in (MARKER, OLD_MARKER)
                due += judge.take(version, newest=newest, marker=marker)
            if position is None:
                due += judge.end()
            yield DuePage(due, versions, position)

    async def due_uploads(self, prefix: str) -> AsyncIterator[list[tuple[Upload, str]]]:
        """Yield pages of open uploads that are due, each with the id of its rule. Raises DomainError."""
        key = upload_id = ""
        more = True
        while more:
            uploads, _, more = await self._index.uploads(self._bucket.id, prefix, "", key, upload_id, UPLOADS_PER_PAGE)
            due = []
            for upload in uploads:
                key, upload_id = upload.key, upload.upload_id
                found = evaluator.abort(self._rules.enabled, self._day, upload.key, upload.initiated)
                if found is not None and found[0] <= self._now:
                    due.append((upload, found[1]))
            yield due
