"""All jobs of a worker: which there are, what they get, and their election."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from functools import partial

from sluice_s3.app.access.lookup_cache import MAX_AGE_SECONDS
from sluice_s3.app.index import Index
from sluice_s3.app.jobs.audit_retention import AuditRetention
from sluice_s3.app.jobs.board import Job, JobBoard
from sluice_s3.app.jobs.integrity.capacity import CapacityMonitor
from sluice_s3.app.jobs.integrity.scrub import Scrubber
from sluice_s3.app.jobs.journals.writer import RETAINED_MS, JournalWriter, other_stores_watermark
from sluice_s3.app.jobs.leader_election import FlockElection, LeaseElection
from sluice_s3.app.jobs.lifecycle import Lifecycle
from sluice_s3.app.jobs.notifications.sender import NotificationSender
from sluice_s3.app.jobs.pacing import SPREAD_SECONDS, Pacer, RequestLoad
from sluice_s3.app.jobs.plain_files.scan import PlainFileScanner
from sluice_s3.app.jobs.reclaim.compaction import Compactor
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.relocation.bucket_migration import BucketMigrator
from sluice_s3.app.jobs.relocation.restores import RestoreRunner
from sluice_s3.app.jobs.rename_tokens import RenameTokenExpiry
from sluice_s3.app.jobs.runner import Jobs, StoreJobs
from sluice_s3.app.s3.inventory.delivery import InventoryDelivery
from sluice_s3.app.s3.logging.delivery import LogDelivery
from sluice_s3.app.s3.services import Services
from sluice_s3.app.server.processes.context import WorkerContext
from sluice_s3.app.server.shared_memory.oldest_requests import boottime_ms
from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar
from sluice_s3.app.store.store import Store

logger = logging.getLogger("sluice.server")


class BackgroundJobs:
    """The jobs of one worker, from `start` to `stop`. If they end by themselves, so does the worker."""

    def __init__(self, index: Index, services: Services, context: WorkerContext) -> None:
        self._index = index
        self._services = services
        self._store = services.store
        self._settings = settings = services.settings
        self._counters = context.counters
        self._busy = RequestLoad(context.counters.read_activity).busy
        self._oldest = index.across(context.oldest_request)
        self._events = NotificationSender(
            index, settings.notify_targets, settings.notify_retention, refusals=settings.notify_refusals
        )
        self._board = JobBoard(index)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start them."""
        index = self._index
        election = LeaseElection(index) if index.many_hosts else FlockElection(self._settings.run_dir / "jobs.lock")
        jobs = Jobs(election, self._store, index.is_writer_dead, self._store_jobs, self._gateway_jobs(), self._board)
        self._task = asyncio.create_task(jobs.run())
        self._task.add_done_callback(_end_without_jobs)

    async def stop(self) -> None:
        """Stop them after their last round."""
        if self._task is not None:
            self._task.remove_done_callback(_end_without_jobs)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._events.close()

    def _gateway_jobs(self) -> dict[str, Job]:
        """Return the jobs of no single store, by the names of their leases."""
        store, oldest, settings = self._store, self._oldest, self._settings
        day = LifecycleCalendar(settings.lifecycle_day_seconds)
        pace = settings.transition_rate
        pieces = GarbageCollector(
            store, oldest, boottime_ms, settings.discard_grace, blobs=False, pacer=Pacer(self._busy)
        )
        moves = BucketMigrator(store, oldest, boottime_ms, round(MAX_AGE_SECONDS * 1000), self._busy)
        lifecycle = Lifecycle(
            store, day, settings.lifecycle_rate, self._counters.count_expiry, pace=pace, busy=self._busy
        )
        logs, inventories = LogDelivery(self._services), InventoryDelivery(self._services)
        audit = AuditRetention(self._index, settings.audit_retention_days)
        for name, job in (("lifecycle", lifecycle), ("logs", logs), ("inventories", inventories), ("audit", audit)):
            self._board.add(name, job.run_again)
        restores = {"restores": RestoreRunner(store, day, pace, busy=self._busy).run_once} if store.archives else {}
        return {
            "pieces": pieces.run_once,
            "moves": moves.run_once,
            "lifecycle": lifecycle.run_once,
            **restores,
            "logs": logs.run_once,
            "tokens": RenameTokenExpiry(self._index).run_once,
            "events": self._events.run_once,
            "inventories": inventories.run_once,
            "audit": audit.run_once,
        }

    def _store_jobs(self, store: Store) -> StoreJobs:
        settings = self._settings
        journal_writer = JournalWriter(store, retained=max(RETAINED_MS, int(settings.commit_timeout * 3000)))
        rate, grace = settings.scrub_rate, settings.discard_grace
        scrubber = Scrubber(store, rate, journal_writer.request_snapshot, self._busy) if rate else None
        elsewhere = partial(other_stores_watermark, store)
        garbage = GarbageCollector(
            store,
            self._oldest,
            boottime_ms,
            grace,
            journal_writer.bound,
            pieces=False,
            elsewhere=elsewhere,
            pacer=Pacer(self._busy),
        )
        compactor = Compactor(
            store,
            settings.compaction_rate,
            grace and grace + SPREAD_SECONDS,  # without a grace nothing waits
            self._counters.count_compaction,
            busy=self._busy,
        )
        space = CapacityMonitor(store, settings.named_stores[store.name])
        tree = None if store.tree is None else PlainFileScanner(store, store.tree, settings.tree_scan_interval)
        return StoreJobs(store, garbage, journal_writer, scrubber, compactor, space, tree, self._board)


def _end_without_jobs(task: asyncio.Task[None]) -> None:
    """End this worker, whose background jobs have ended: its successor runs them again."""
    if not task.cancelled():  # cancelled when the loop ends
        logger.error("the background jobs ended: this worker ends", exc_info=task.exception())
        os.kill(os.getpid(), signal.SIGTERM)
