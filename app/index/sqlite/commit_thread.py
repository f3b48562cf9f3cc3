"""Group commit: one thread per process runs queued transactions with one sync.

In a relaxed index, brief transactions run on the event loop: a commit is then a write to the page cache, and costs less
than waking the thread and being woken by it. (SQLite syncs only the first one after the log was copied back whole, and
that is the checkpointer's.)
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from sluice_s3.app.crash import crash_point
from sluice_s3.app.errors import CommitUnknown, DomainError, StoreFull, WriterDead
from sluice_s3.app.index.engine.commit_queue import CommitQueue, Job, State, fail_jobs
from sluice_s3.app.index.engine.declared import Write
from sluice_s3.app.index.meta.statements import SEQUENCE
from sluice_s3.app.index.sqlite.commit_witness import CommitWitness
from sluice_s3.app.index.sqlite.connection import is_corrupt, to_domain_error
from sluice_s3.app.index.sqlite.disk_reserve import DiskReserve
from sluice_s3.app.index.sqlite.files import IndexFiles
from sluice_s3.app.index.sqlite.gathering import JobGathering
from sluice_s3.app.index.sqlite.runner import OpenTransaction
from sluice_s3.app.private_files import open_file
from sluice_s3.app.process_tuning import avoid_preemption

logger = logging.getLogger("sluice.index")

LARGEST_GROUP = 256
SLOW_SECONDS = 0.05
"""A group that took longer on the event loop had to wait: for a while the thread commits."""
SLOW_PAUSE_SECONDS = 10.0


class CommitThread(CommitQueue):
    """Owns the connection for writes, in a thread of its own and, if `inline`, on the event loop.

    The file lock around each group makes the processes of one index take turns: SQLite's own busy handler polls and
    lets some processes starve. Every group checks `incarnation` (law 5); 0 writes without one. `lost` is called once,
    on the event loop, when the incarnation is no longer live.
    """

    def __init__(
        self,
        connect: Callable[[], apsw.Connection],
        lock_path: Path,
        *,
        timeout: float,
        queue_limit: int,
        changed: Callable[[], None],
        lost: Callable[[], None] | None = None,
        reserve: DiskReserve | None = None,
        files: IndexFiles | None = None,
        witness: CommitWitness | None = None,
        inline: bool = False,
    ) -> None:
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        super().__init__(self._queue.qsize, timeout=timeout, limit=queue_limit)
        self._connect = connect
        self._lock_path = lock_path
        self._changed = changed
        self._lost = lost
        self._reserve = reserve
        self._files = files
        self._witness = witness
        self.corrupt = False
        """Whether SQLite has reported that the file is damaged."""
        self._inline = inline
        self._loop_thread = threading.get_ident()
        self._fresh = JobGathering(grow=inline, commit=self._commit_fresh)
        self._slow_until = 0.0
        self._turn = threading.Lock()
        """Held by the thread, or the event loop, that commits."""
        self._connection: apsw.Connection | None = None
        self._thread = threading.Thread(target=self._run, name="sluice-index", daemon=True)
        self.incarnation = 0

    # on the event loop

    def start(self) -> None:
        """Start the thread."""
        self._lock = open_file(self._lock_path)
        self._thread.start()

    def submit(self, write: Write[..., Any], arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        """Queue an operation.

        Raises Overloaded when the queue is full. The future raises Overloaded when the operation waited too long.
        """
        deadline = time.monotonic() + self._timeout
        function = write.transaction() if write.wraps else write.function
        job = Job(write, function, arguments, self._loop.create_future(), deadline)
        self._enter(job, self._queue.qsize() + len(self._fresh))
        self._fresh.add(job)
        return job.future

    def take(self, job: Job) -> None:
        """See `CommitQueue.take`."""
        if threading.get_ident() == self._loop_thread:
            self._fresh.add(job)
        else:
            self._queue.put(job)

    def _commit_fresh(self, jobs: list[Job]) -> None:
        """Commit a group on the event loop, if it is brief and no lock must be waited for; else in the thread."""
        if self._inline and not self._stopping and self._is_brief(jobs) and self._turn.acquire(blocking=False):
            try:
                committed = self._try_group(jobs)
            finally:
                self._turn.release()
            if committed is not None:
                self._deliver(committed)
                return
        self._queue_all(jobs)

    def _queue_all(self, jobs: list[Job]) -> None:
        for job in jobs:
            self._queue.put(job)

    def _is_brief(self, jobs: list[Job]) -> bool:
        return (
            len(jobs) <= LARGEST_GROUP
            and not self._queue.qsize()
            and time.monotonic() > self._slow_until
            and all(job.write.brief(*job.arguments) for job in jobs)
        )

    def _try_group(self, jobs: list[Job]) -> list[Job] | None:
        """Return the jobs that were run, None if a lock is taken."""
        started = time.monotonic()
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return None
        try:
            if self._connection is None:
                return None
            group = OpenTransaction(self._connection)
            if not group.try_lock():
                return None
            jobs = self._still_queued(jobs)
            self._run_group(jobs, group)
        except apsw.Error as error:
            self._disconnect()
            jobs = self._still_queued(jobs)
            fail_jobs(jobs, self._translated(error))
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        ended = time.monotonic()
        if ended - started > SLOW_SECONDS:
            self._slow_until = ended + SLOW_PAUSE_SECONDS
        return [job for job in jobs if job.state is State.RUNNING]  # the others were put back

    def _put_back(self, jobs: list[Job]) -> None:
        for job in jobs:
            job.state = State.QUEUED
        self._queue_all(jobs)

    async def close(self) -> None:
        """Let the thread finish the queue, and close the connection."""
        if self._stopping:
            return
        self._stopping = True
        self._queue_all(self._fresh.take())
        self._queue.put(None)
        # a stopped process may hold the file lock forever
        await asyncio.to_thread(self._thread.join, self._timeout)
        if self._timer is not None:
            self._timer.cancel()
        if not self._thread.is_alive():
            os.close(self._lock)

    # in the thread

    def _run(self) -> None:
        avoid_preemption()
        while (first := self._queue.get()) is not None:
            jobs: list[Job] = []
            with self._turn:
                try:
                    fcntl.flock(self._lock, fcntl.LOCK_EX)
                    try:
                        jobs = self._take(first)
                        self._run_group(jobs)
                    finally:
                        fcntl.flock(self._lock, fcntl.LOCK_UN)
                except Exception as error:  # of memory, too: this thread must go on
                    logger.exception("index: its lock failed")
                    fail_jobs(jobs, self._translated(error))
            if jobs and not self._deliver_soon(jobs):
                break
        self._disconnect()

    def _take(self, first: Job) -> list[Job]:
        """Return the next group.

        Jobs that waited too long for the lock have already failed and are left out.
        """
        group = [first]
        try:
            while len(group) < LARGEST_GROUP:
                job = self._queue.get_nowait()
                if job is None:
                    self._queue.put(None)
                    break
                group.append(job)
        except queue.Empty:
            pass
        return self._still_queued(group)

    # in the thread, or on the event loop in its turn

    def _still_queued(self, jobs: list[Job]) -> list[Job]:
        """Return the jobs that were not abandoned; they are running from now on."""
        with self._state_lock:
            jobs = [job for job in jobs if job.state is State.QUEUED]
            for job in jobs:
                job.state = State.RUNNING
        return jobs

    def _run_group(self, jobs: list[Job], locked: OpenTransaction | None = None) -> None:
        """Commit a group under the file lock, in the transaction that `try_lock` has begun if there is one.

        Every job gets its result or its error.
        """
        try:
            if possible := self._possible(jobs):
                self._commit_group(possible, locked)
            elif locked is not None:
                self._abandon(locked)
        except Exception as error:
            logger.exception("index: a group of %d failed", len(jobs))
            self._disconnect()  # no transaction may stay open
            fail_jobs(jobs, self._translated(error))

    def _possible(self, jobs: list[Job]) -> list[Job]:
        """Return the jobs; fail those that grow the index when its disk is full."""
        if self._reserve is None or not jobs or not self._reserve.is_short():
            return jobs
        growing = [job for job in jobs if job.write.grows]
        fail_jobs(growing, StoreFull(reason="the index has no space left"))
        return [job for job in jobs if not job.write.grows]

    def _commit_group(self, jobs: list[Job], locked: OpenTransaction | None = None) -> None:
        """Commit all jobs in one transaction.

        If one breaks it, each job gets its own, so that the others succeed.
        """
        group = self._begin(jobs, locked)
        if group is None:
            return
        try:
            for job in jobs:
                self._run_job(group, job)
            group.write_sequence()
        except Exception as error:
            self._abandon(group)
            if len(jobs) == 1:
                fail_jobs(jobs, error if isinstance(error, DomainError) else self._translated(error))
                return
            logger.warning("index: %s in a group of %d, which is run one by one", error, len(jobs))
            for job in jobs:
                job.result = job.error = None
            if locked is not None:  # each begin may have to wait for another program: not on the event loop
                self._put_back(jobs)
                return
            for job in jobs:
                self._commit_group([job])
            return
        crash_point("index.commit", jobs)
        self._commit(group, jobs)

    def _begin(self, jobs: list[Job], locked: OpenTransaction | None) -> OpenTransaction | None:
        try:
            if self._files is not None:
                self._files.require()
            if self._connection is None:
                self._connection = self._connect()
            group = locked or OpenTransaction(self._connection)
            live = group.begin(self.incarnation)
        except DomainError as error:
            if locked is not None:
                self._abandon(locked)
            fail_jobs(jobs, error)
            return None
        except (apsw.Error, ValueError) as error:
            self._disconnect()
            fail_jobs(jobs, self._translated(error))
            return None
        if not live:
            self._abandon(group)
            fail_jobs(jobs, WriterDead())
            self._report_lost()
            return None
        return group

    def _report_lost(self) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            try:
                self._loop.call_soon_threadsafe(lost)
            except RuntimeError:
                pass  # the loop is closed: the process ends anyway

    def _run_job(self, group: OpenTransaction, job: Job) -> None:
        """Run one job.

        Raises any error that breaks the group: all but a domain error before the job's first write.
        """
        try:
            job.result = group.run(job.function(*job.arguments))
        except DomainError as error:
            if group.dirty:
                raise
            job.error = error.with_traceback(None)  # its frames belong to this thread and would keep the group alive

    def _abandon(self, group: OpenTransaction) -> None:
        try:
            group.rollback()
        except apsw.Error:
            self._disconnect()

    def _commit(self, group: OpenTransaction, jobs: list[Job]) -> None:
        try:
            group.commit()
        except Exception as error:
            logger.error("index: COMMIT failed: %s", error)
            try:
                took_effect = self._took_effect(group.sequence, confirm=not isinstance(error, apsw.FullError))
            except Exception as second:
                logger.error("index: and its outcome is unknown: %s", second)
                self._disconnect()
                fail_jobs(jobs, CommitUnknown())
                return
            if not took_effect:
                fail_jobs(jobs, self._translated(error))
                return
        if self._witness is not None:
            self._witness.record(group.sequence)
        crash_point("index.committed", jobs)
        if any(job.notifies and job.error is None for job in jobs):
            self._changed()

    def _took_effect(self, sequence: int, *, confirm: bool) -> bool:
        """Return whether the group that wrote `sequence` is committed.

        Reads it on a new connection, under the file lock. A commit whose sync failed may be complete in the log, and a
        recovery of the log may bring it to life. So with `confirm`, "no" counts only after another commit has
        overwritten it and is synced, and "yes" only after a later commit is synced. When the disk was full, the commit
        frame, which is the last, was never written completely.
        """
        self._disconnect()
        self._connection = self._connect()
        cursor = self._connection.cursor()
        ((found,),) = cursor.execute(SEQUENCE.sql).fetchall()
        if confirm:
            group = OpenTransaction(self._connection)
            group.begin(0)
            group.sequence = max(group.sequence, sequence)
            group.write_sequence()
            group.commit()
        return bool(found == sequence)

    def _translated(self, error: Exception) -> DomainError:
        self.corrupt = self.corrupt or is_corrupt(error)
        return to_domain_error(error)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except apsw.Error as error:
                logger.warning("index: close: %s", error)
