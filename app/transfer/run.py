"""One transfer: a bucket, or what has a prefix there, from one endpoint to another.

Nothing is remembered between runs but the open multipart uploads: what is to be done follows from both listings. So a
run that was killed is gone on with by the same command, and so is a copy that has become old.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from sluice_s3.app.transfer import listing
from sluice_s3.app.transfer.bucket_settings import copy_settings
from sluice_s3.app.transfer.copying import Choices, Copier
from sluice_s3.app.transfer.endpoints import ENABLED, SUSPENDED, Bucket
from sluice_s3.app.transfer.errors import Interrupted, NotTaken, TransferError, describe, is_fatal
from sluice_s3.app.transfer.listing import Entry
from sluice_s3.app.transfer.matching import Plan, plan_aligned, plan_current, plan_dated
from sluice_s3.app.transfer.open_uploads import OpenUploads
from sluice_s3.app.transfer.report import Report

WAITING_PER_THREAD = 4
"""Keys that wait for each thread, so that the listings do not run away."""
MAX_FAILURES = 8
"""Versions that fail one after the other, because an endpoint does not answer, before the transfer stops."""
GO_ON = "the same command goes on from here"


class Transfer:
    """Copies from one bucket to another what is missing there."""

    def __init__(
        self,
        source: Bucket,
        target: Bucket,
        choices: Choices,
        report: Report,
        state: Path,
        parallel: int,
        show: Callable[[Counter[str]], None],
    ) -> None:
        self._source = source
        self._target = target
        self._choices = choices
        self._report = report
        self._state = state
        self._parallel = parallel
        self._show = show
        self._with_versions = False
        self._failures = 0
        self._stopped: Exception | None = None
        self._lock = threading.Lock()

    def run(self, prefix: str) -> None:
        """Copy. Raises TransferError when that cannot begin or go on."""
        settings = self._choices.settings and not prefix
        self._open()
        with ExitStack() as stack:
            uploads = OpenUploads(self._state, self._target)
            stack.callback(uploads.close)
            uploads.abort_left()
            if settings:
                self._copy_settings(late=False)
            parts = stack.enter_context(ThreadPoolExecutor(self._parallel, "parts"))
            copier = Copier(self._source, self._target, self._choices, self._report, parts, uploads)
            self._copy_keys(copier, prefix)
        if self._stopped is not None:
            kind = TransferError if is_fatal(self._stopped) else Interrupted
            raise kind(f"stopped: {describe(self._stopped)}; {GO_ON}")
        if settings:
            self._copy_settings(late=True)
        if self._with_versions and self._source.versioning == SUSPENDED:
            self._target.set_versioning(SUSPENDED)

    def _open(self) -> None:
        source, target = self._source, self._target
        if not source.open():
            raise TransferError(f"{source.where}: there is no such bucket")
        locked = source.has_object_lock()
        if not target.open():
            target.create(lock=locked)
        target.dated = target.connection.takes_times(target.name)
        if source.versioning in (ENABLED, SUSPENDED) and not self._choices.current_only:
            self._with_versions = target.set_versioning(ENABLED)
            if not self._with_versions:
                self._report.not_taken("versions", "the destination keeps none: only objects are copied", source.name)
        if locked and not target.has_object_lock():
            self._lock_target()

    def _lock_target(self) -> None:
        try:
            self._target.client.put_object_lock_configuration(
                Bucket=self._target.name, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"}
            )
        except (BotoCoreError, ClientError) as error:
            self._report.not_taken("object lock", describe(error), self._target.name)

    def _copy_settings(self, *, late: bool) -> None:
        try:
            copy_settings(self._source, self._target, self._report, late=late)
        except ClientError as error:
            raise TransferError(f"the settings of {self._source.where}: {describe(error)}") from error

    def _copy_keys(self, copier: Copier, prefix: str) -> None:
        room = threading.BoundedSemaphore(self._parallel * WAITING_PER_THREAD)
        with ThreadPoolExecutor(self._parallel, "keys") as pool:
            try:
                for plan in self._plans(prefix):
                    room.acquire()
                    if self._stopped is not None:
                        break
                    pool.submit(self._copy_key, copier, plan).add_done_callback(lambda _: room.release())
            except BaseException as error:
                # what is being copied is finished, what waits is not begun
                self._stopped = self._stopped or (error if isinstance(error, Exception) else Interrupted(GO_ON))
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _plans(self, prefix: str) -> Iterator[Plan]:
        """Yield what is to be done for each key that lacks something."""
        for entries, present in self._pairs(prefix):
            plan = self._plan(entries, present)
            self._report.add("listed", len(entries))
            self._report.add("present", plan.present)
            for entry in plan.too_late:
                reason = "the destination has a newer version of the key"
                self._report.not_taken("version", reason, entry.key, entry.version_id)
            if plan.missing:
                yield plan
            else:
                self._show(self._report.counts)

    def _pairs(self, prefix: str) -> Iterator[tuple[list[Entry], list[Entry]]]:
        """Yield the versions of each key of the source with those at the destination, by one pass over both."""
        there = listing.keys(self._target, prefix, current_only=not self._with_versions)
        found = next(there, None)
        for key, entries in listing.keys(self._source, prefix, current_only=not self._with_versions):
            position = listing.sort_key(key)
            while found is not None and listing.sort_key(found[0]) < position:
                found = next(there, None)
            yield entries, found[1] if found is not None and found[0] == key else []

    def _plan(self, entries: list[Entry], present: list[Entry]) -> Plan:
        if not self._with_versions:
            return plan_current(entries, present, dated=self._target.dated, size_only=self._choices.size_only)
        if self._target.dated:
            return plan_dated(entries, present)
        return plan_aligned(entries, present, size_only=self._choices.size_only)

    def _copy_key(self, copier: Copier, plan: Plan) -> None:
        for missing in plan.missing:
            if self._stopped is not None:
                return
            entry = missing.entry
            try:
                copier.copy(missing)
            except NotTaken as error:
                self._report.not_taken("version", str(error), entry.key, entry.version_id)
            except Exception as error:
                # the later versions wait for the next run: their order is that of their copies
                self._report.not_taken("version", f"{describe(error)} ({GO_ON})", entry.key, entry.version_id)
                self._note_failure(error)
                return
            else:
                self._failures = 0
            self._show(self._report.counts)

    def _note_failure(self, error: Exception) -> None:
        with self._lock:
            self._failures += 1
            if self._failures >= MAX_FAILURES or is_fatal(error):
                self._stopped = self._stopped or error
