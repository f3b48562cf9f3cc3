"""Commits one group, and finds out its outcome when the connection is lost (law 4).

Each group inserts an operation id that this process chose. When the connection is lost in COMMIT, the process inserts
the same id on another connection. The server lets one of the two inserts succeed, and makes the second wait until the
first has ended. So the outcome is never guessed, and a group that counts as undone cannot be committed later.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

from sluice_s3.app.crash import crash_point
from sluice_s3.app.errors import CommitUnknown, DomainError, Overloaded, StoreUnavailable, WriterDead
from sluice_s3.app.index.engine.commit_queue import Job
from sluice_s3.app.index.engine.procedures import Procedure
from sluice_s3.app.index.postgres.advisory_locks import GLOBAL_LOCK, Locks
from sluice_s3.app.index.postgres.database import Connection, Database, Pool
from sluice_s3.app.index.postgres.errors import is_lost, is_retryable, state_of, to_domain_error
from sluice_s3.app.index.postgres.procedure_calls import DEAD, Call, apply_results, build_call, recover_results
from sluice_s3.app.index.postgres.runner import OpenTransaction
from sluice_s3.app.index.sql.transaction import now_ms

logger = logging.getLogger("sluice.index")

BEGIN_GROUP = "SELECT number, state FROM sluice_begin($1::bigint, $2::bigint, $3::bigint, $4, $5::bigint, $6::bigint[])"
RESOLVE = """INSERT INTO operations VALUES ($1::bigint, $2::bigint, -1)
ON CONFLICT (id) DO UPDATE SET at = operations.at RETURNING number"""
"""An existing row keeps its number. -1 marks a row that this statement inserted."""
FORGET = "DELETE FROM operations WHERE id >= $1::bigint AND id < $2::bigint"
FORGET_OLD = "DELETE FROM operations WHERE at < $1::bigint"
NOTIFY_CHANGE = """WITH counted AS (
    INSERT INTO meta VALUES ('generation', '1')
    ON CONFLICT (name) DO UPDATE SET value = (meta.value::bigint + 1)::text
) SELECT pg_notify('sluice', '')"""
RETAINED_GROUPS = 1 << 12
"""Number of recent operations of this process to keep, and the minimum number to delete at a time."""
BITS = 20
OPERATION_RETENTION_MS = 86_400_000
LOCK_TIMEOUT_MS = 1000
"""Milliseconds that a group waits for the exclusive global lock, and so delays all groups behind it, before it
retries."""


class GroupCommitter:
    """Commits groups of jobs.

    Every group checks `incarnation` (law 5); 0 commits without one. `lost` is called once when the incarnation is dead.
    `changed` is called after a commit that other processes must be notified of.
    """

    def __init__(
        self,
        database: Database,
        pool: Pool,
        *,
        timeout: float,
        changed: Callable[[], None],
        lost: Callable[[], None] | None,
    ) -> None:
        self._database = database
        self._pool = pool
        self._timeout = timeout
        self._changed = changed
        self._lost = lost
        self._base = self._operation = self._forgotten = 0
        self._before: list[int] = []
        """For each group in flight, an operation id that is smaller than all of its operation ids."""
        self.incarnation = 0

    async def commit(self, jobs: Sequence[Job], locks: Locks | None, kind: Procedure = Procedure.NONE) -> None:
        """Run and commit jobs together.

        If one job breaks the group, each job runs alone, so that the others succeed.
        """
        before = self._operation
        self._before.append(before)
        try:
            await self._commit(jobs, locks, kind)
        finally:
            self._before.remove(before)

    async def _commit(self, jobs: Sequence[Job], locks: Locks | None, kind: Procedure) -> None:
        if kind is not Procedure.NONE and locks is not None:
            jobs = await self._call(jobs, locks, kind)
            if not jobs:
                return
        deadline = time.monotonic() + self._timeout
        while True:
            error = await self._attempt(jobs, locks)
            if error is None:
                return
            for job in jobs:
                job.result = job.error = None
            if len(jobs) > 1 and not isinstance(error, TimeoutError):
                logger.warning("index: %s in a group of %d, which is run one by one", type(error).__name__, len(jobs))
                for job in jobs:
                    await self._commit([job], locks, Procedure.NONE)
                return
            if time.monotonic() >= deadline or not is_retryable(error):
                fail(jobs, error)
                return

    async def _call(self, jobs: Sequence[Job], locks: Locks, kind: Procedure) -> Sequence[Job]:
        """Run all jobs in one call of a server function.

        Returns the jobs that the function left untouched.
        """
        call = build_call(kind, jobs)
        if self._database.pooler:
            call = call._replace(must_know=True)
        for retries in (1, 0):
            try:
                connection = await self._pool.acquire()
            except DomainError as error:
                fail(jobs, error)
                return ()
            operation = self._next_operation()
            common = (operation, now_ms(), GLOBAL_LOCK, self.incarnation, locks)
            crash_point("index.commit", jobs)
            task = asyncio.shield(self._call_procedure(connection, kind, jobs, call, common))
            if not isinstance(untouched := await task, Exception):
                crash_point("index.committed", jobs)
                return untouched
            if not retries or not is_lost(untouched):
                fail(jobs, untouched)
                return ()
        raise AssertionError("unreachable")

    async def _call_procedure(
        self, connection: Connection, kind: Procedure, jobs: Sequence[Job], call: Call, common: tuple[Any, ...]
    ) -> Sequence[Job] | Exception:
        """Make the call for `_call`.

        Returns an error when no job took effect, nor ever will.
        """
        timeout = self._timeout
        try:
            if call.must_know:
                await connection.execute(self._database.begin, timeout=timeout)
            rows = await connection.fetch(call.sql, *common, *call.arrays, timeout=timeout)
        except Exception as error:
            if call.must_know:
                await self._undo(connection, error)
                return jobs if state_of(error) and not is_lost(error) and state_of(error) != DEAD else self._dead(error)
            return await self._recover_lost_call(connection, kind, jobs, common[0], error)
        untouched = apply_results(kind, jobs, rows)
        if call.must_know:
            await self._end(connection, common[0], [job for job in jobs if job not in untouched])
        else:
            self._pool.release(connection)
        return untouched

    async def _recover_lost_call(
        self, connection: Connection, kind: Procedure, jobs: Sequence[Job], operation: int, error: Exception
    ) -> Sequence[Job] | Exception:
        """Find the outcome of a self-committing call that ended with an error."""
        if state_of(error) and not is_lost(error):  # the server undid it
            self._pool.release(connection)
            if state_of(error) == DEAD:
                return self._dead(error)
            logger.warning("index: %s in a call for %d, which are run as transactions", error, len(jobs))
            return jobs
        self._pool.drop(connection)
        if isinstance(error, TimeoutError):
            self._database.mark_down()
        try:
            number = await self._resolve_number(operation)
            if number < 0:
                return error
            connection = await self._pool.acquire()
            try:
                async with self._database.transaction(connection):
                    await recover_results(kind, jobs, number, connection)
            finally:
                self._pool.drop(connection)
        except Exception as second:
            logger.error("index: the outcome of a group is unknown: %s", type(second).__name__)
            fail(jobs, CommitUnknown())
        return ()

    def _dead(self, error: Exception) -> Exception:
        if state_of(error) != DEAD:
            return error
        self._report_lost()
        return WriterDead()

    async def _attempt(self, jobs: Sequence[Job], locks: Locks | None) -> Exception | None:
        """Commit the jobs.

        Returns the error that broke the group; then nothing took effect.
        """
        try:
            async with asyncio.timeout(self._timeout):
                connection, operation = await self._prepare(jobs, locks)
        except DomainError as error:
            if len(jobs) > 1 and not isinstance(error, WriterDead | StoreUnavailable | Overloaded):
                return error  # one of the jobs broke the group
            fail(jobs, error)
            return None
        except Exception as error:
            if isinstance(error, TimeoutError):
                self._database.mark_down()
            return error
        crash_point("index.commit", jobs)
        # COMMIT is sent: from here on only its answer, or a later look at `operations`, tells the outcome
        await asyncio.shield(self._end(connection, operation, jobs))
        return None

    async def _prepare(self, jobs: Sequence[Job], locks: Locks | None) -> tuple[Connection, int]:
        """Run everything before COMMIT.

        Raises the error that broke the group; then nothing took effect.
        """
        connection, operation, first = await self._begin(locks)
        try:
            group = OpenTransaction(connection, first)
            for job in jobs:
                await _run_job(group, job)
            if any(job.notifies and job.error is None for job in jobs):
                await connection.execute(NOTIFY_CHANGE)
        except Exception as error:
            await self._undo(connection, error)
            raise
        except BaseException:
            self._pool.drop(connection)
            raise
        return connection, operation

    async def _begin(self, locks: Locks | None) -> tuple[Connection, int, int]:
        """Begin a transaction with its locks.

        Retries on a stale connection. Raises the error that prevented the begin.
        """
        for retries in (2, 1, 0):
            connection = await self._pool.acquire()
            operation = self._next_operation()
            begin = self._database.begin
            if locks is None:
                begin += f"; SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}"
            try:
                await connection.execute(begin)
                row = await connection.fetchrow(
                    BEGIN_GROUP, operation, now_ms(), GLOBAL_LOCK, locks is None, self.incarnation, list(locks or ())
                )
            except Exception as error:
                await self._undo(connection, error)
                if retries and is_lost(error):
                    continue
                raise
            except BaseException:
                self._pool.drop(connection)
                raise
            if self.incarnation and row[1] != "live":
                await self._undo(connection, None)
                self._report_lost()
                raise WriterDead()
            return connection, operation, row[0]
        raise AssertionError("unreachable")

    async def _undo(self, connection: Connection, error: Exception | None) -> None:
        """Roll back a group whose COMMIT was never sent."""
        if error is None or not is_lost(error):
            try:
                await connection.execute("ROLLBACK", timeout=1)
            except Exception:
                self._pool.drop(connection)
            except BaseException:  # the timeout of the whole group expires here
                self._pool.drop(connection)
                raise
            else:
                self._pool.release(connection)
        else:
            self._pool.drop(connection)

    async def _end(self, connection: Connection, operation: int, jobs: Sequence[Job]) -> None:
        try:
            answer = await connection.execute("COMMIT", timeout=self._timeout)
        except Exception as error:
            logger.error("index: COMMIT failed: %s", type(error).__name__)
            self._pool.drop(connection)
            if isinstance(error, TimeoutError):
                self._database.mark_down()
            try:
                took_effect = await self._resolve_number(operation) >= 0
            except Exception as second:
                logger.error("index: and its outcome is unknown: %s", type(second).__name__)
                fail(jobs, CommitUnknown())
                return
            if not took_effect:
                fail(jobs, error)
                return
        else:
            self._pool.release(connection)
            if answer != "COMMIT":
                fail(jobs, RuntimeError(f"the server answered COMMIT by {answer}"))
                return
        crash_point("index.committed", jobs)
        if any(job.notifies and job.error is None for job in jobs):
            self._changed()

    async def _resolve_number(self, operation: int) -> int:
        """Return the number that the group of an operation drew.

        Returns -1 when it is not committed, nor ever will be.
        """
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                connection = await self._pool.acquire()
                try:
                    async with asyncio.timeout(max(deadline - time.monotonic(), 0.1)):
                        async with self._database.transaction(connection):
                            number = await connection.fetchval(RESOLVE, operation, now_ms())
                except BaseException:
                    self._pool.drop(connection)
                    raise
                self._pool.release(connection)
                return int(number)
            except Exception:
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(0.1)

    def _next_operation(self) -> int:
        if self._operation - self._base >= (1 << BITS) - 1 or not self._base:
            self._base = (secrets.randbits(62 - BITS) + 1) << BITS
            self._operation = self._forgotten = self._base
        self._operation += 1
        return self._operation

    async def tidy(self) -> None:
        """Delete operations that no group in flight needs.

        Called periodically.
        """
        until = min([self._operation - RETAINED_GROUPS, *self._before])
        if until < self._forgotten + RETAINED_GROUPS:
            return
        connection = await self._pool.acquire()
        try:
            async with self._database.transaction(connection):
                await connection.execute(FORGET, self._forgotten, until)
                await connection.execute(FORGET_OLD, now_ms() - OPERATION_RETENTION_MS)
        except BaseException:
            self._pool.drop(connection)
            raise
        self._pool.release(connection)
        self._forgotten = until

    def _report_lost(self) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            lost()


async def _run_job(group: OpenTransaction, job: Job) -> None:
    """Run one job.

    Raises any error that breaks the group: all but a domain error before the job's first write.
    """
    try:
        job.result = await group.run(job.function(*job.arguments))
    except DomainError as error:
        if group.dirty:
            raise
        job.error = error.with_traceback(None)


def fail(jobs: Sequence[Any], error: Exception) -> None:
    """Fail each job with its own copy of the error.

    An exception that several tasks raise collects all their tracebacks.
    """
    found = to_domain_error(error)
    for job in jobs:
        job.result, job.error = None, type(found)(**found.detail)
