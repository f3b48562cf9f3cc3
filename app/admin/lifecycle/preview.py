"""Counts what the lifecycle job would do, by its own selection, within limits of time and rows."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Literal

from sluice_s3.app.admin.lifecycle.models import DueKey, DueOut, PreviewOut, RulePreview
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.lifecycle.queries import scan_start
from sluice_s3.app.index.object_lock.protection import SETTING as OBJECT_LOCK
from sluice_s3.app.index.object_lock.protection import is_retained, lock_of
from sluice_s3.app.index.objects.listing import successor
from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.store.lifecycle import evaluator
from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar
from sluice_s3.app.store.lifecycle.evaluator import OLDER, Rules
from sluice_s3.app.store.lifecycle.selection import DuePage, LifecycleSelection

MAX_SECONDS = 5.0
MAX_ROWS = 250_000
MAX_KEYS = 100
"""Keys listed of each kind of each rule."""
Kind = Literal["expire", "noncurrent", "marker", "transition", "noncurrent-transition", "upload"]
KINDS: dict[str, Kind] = {
    evaluator.OBJECT: "expire",
    OLDER: "noncurrent",
    evaluator.MARKER: "marker",
    evaluator.TRANSITION: "transition",
    evaluator.OLDER_TRANSITION: "noncurrent-transition",
}
Stopped = Literal["", "time", "rows"]


class LifecyclePreview:
    """One preview: it adds up pages of the selection until their end, or a limit."""

    def __init__(
        self,
        index: Index,
        bucket: Bucket,
        rules: Rules,
        day: LifecycleCalendar,
        at: int,
        classes: Collection[str],
        *,
        max_rows: int = MAX_ROWS,
        max_seconds: float = MAX_SECONDS,
    ) -> None:
        """`at` is the time of the run in milliseconds."""
        self._bucket = bucket
        self._rules = rules
        self._at = at
        self._max_rows = max_rows
        self._has_locks = f'"{OBJECT_LOCK}":' in bucket.settings
        self._selection = LifecycleSelection(index, bucket, rules, day, at, classes, headers=self._has_locks)
        self._deadline = time.monotonic() + max_seconds
        self._due: dict[tuple[str, Kind, str], DueOut] = {}
        """By rule, kind and storage class."""
        self._locked = self._looked_at = 0
        self._stopped: Stopped = ""
        self._stopped_at = ""

    async def run(self, notes: list[str]) -> PreviewOut:
        """Return what is due. Raises DomainError."""
        enabled = self._rules.enabled
        for prefix in evaluator.scan_prefixes(rule for rule in enabled if rule.of_versions):
            if self._stopped:
                break
            async for page in self._selection.due_versions(scan_start(prefix), successor(prefix)):
                self._add_page(page)
                if self._is_at_limit("" if page.position is None else page.position[0]):
                    break
        for prefix in evaluator.scan_prefixes(rule for rule in enabled if rule.abort_days is not None):
            if self._stopped:
                break
            async for uploads in self._selection.due_uploads(prefix):
                self._looked_at += len(uploads)
                for upload, rule in uploads:
                    self._add(rule, "upload", "", DueKey(key=upload.key, version_id=upload.upload_id, size=None))
                if self._is_at_limit(uploads[-1][0].key if uploads else ""):
                    break
        return self._result(notes)

    def _add_page(self, page: DuePage) -> None:
        self._looked_at += len(page.versions)
        locked = self._locked_of(page)
        for action in page.due:
            if action.kind == OLDER and action.seq in locked:
                self._locked += 1
                continue
            key = DueKey(key=action.key, version_id=action.version_id, size=action.size)
            self._add(action.rule, KINDS[action.kind], action.storage_class, key)

    def _locked_of(self, page: DuePage) -> set[int]:
        """Return the numbers of the versions that object lock protects."""
        if not self._has_locks:
            return set()
        locks = ((version.seq, lock_of(version.headers)) for version in page.versions)
        return {seq for seq, lock in locks if lock.hold or is_retained(lock)}

    def _add(self, rule: str, kind: Kind, storage_class: str, key: DueKey) -> None:
        due = self._due.get((rule, kind, storage_class))
        if due is None:
            size = 0 if kind != "upload" else None
            due = DueOut(kind=kind, storage_class=storage_class, count=0, bytes=size, keys=[])
            self._due[rule, kind, storage_class] = due
        due.count += 1
        if due.bytes is not None:
            due.bytes += key.size or 0
        if len(due.keys) < MAX_KEYS:
            due.keys.append(key)

    def _is_at_limit(self, key: str) -> bool:
        """Note that the preview ends at a key, if it must."""
        if not self._stopped and key:
            self._stopped = "rows" if self._looked_at >= self._max_rows else ""
            if time.monotonic() > self._deadline:
                self._stopped = "time"
            self._stopped_at = key if self._stopped else ""
        return bool(self._stopped)

    def _result(self, notes: list[str]) -> PreviewOut:
        rules = [
            RulePreview(
                id=rule.id,
                enabled=rule.enabled,
                prefix=rule.prefix or "",
                due=[due for (name, _, _), due in self._due.items() if name == rule.id],
            )
            for rule in self._rules.rules
        ]
        return PreviewOut(
            at=self._at,
            rules=rules,
            permanent=self._bucket.versioning != ENABLED,
            locked=self._locked,
            looked_at=self._looked_at,
            stopped=self._stopped,
            stopped_at=self._stopped_at,
            notes=notes,
        )
