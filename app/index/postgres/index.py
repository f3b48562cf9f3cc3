"""The index in Postgres.

See `app.index.interface.Index`, and README.md in this folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.cluster import transactions as cluster
from sluice_s3.app.index.cluster.rows import Beat
from sluice_s3.app.index.cluster.rows import Writer as WriterRow
from sluice_s3.app.index.cluster.statements import BEAT
from sluice_s3.app.index.engine.declared import DeferredCommit, Write
from sluice_s3.app.index.engine.fencing import fenced
from sluice_s3.app.index.engine.generation import Generation
from sluice_s3.app.index.engine.liveness_lock import is_unlocked
from sluice_s3.app.index.engine.registration import RegisteredIndex
from sluice_s3.app.index.interface import Index
from sluice_s3.app.index.journals import queries as journal_queries
from sluice_s3.app.index.journals.rows import Changes
from sluice_s3.app.index.meta import transactions as meta
from sluice_s3.app.index.objects import transactions as objects
from sluice_s3.app.index.objects.rows import CommitResult
from sluice_s3.app.index.packs.rows import Pack
from sluice_s3.app.index.postgres import lock_discovery, migrate, removal_hold, runner
from sluice_s3.app.index.postgres.advisory_locks import MAX_LOCKS, locks_of
from sluice_s3.app.index.postgres.batched_lookup import VersionLoader
from sluice_s3.app.index.postgres.change_listener import ChangeListener
from sluice_s3.app.index.postgres.commit_scheduler import CommitScheduler
from sluice_s3.app.index.postgres.database import Connection, Database, query_with_retry
from sluice_s3.app.index.postgres.errors import to_domain_error
from sluice_s3.app.index.postgres.group_commit import GroupCommitter
from sluice_s3.app.index.postgres.heartbeat import Heartbeat
from sluice_s3.app.index.postgres.scans import Scans
from sluice_s3.app.index.schema.tables import DEFAULT, REVISION
from sluice_s3.app.index.sql.transaction import Transaction
from sluice_s3.app.index.versioning.rows import Deletion, Done
from sluice_s3.app.private_files import make_directory

if TYPE_CHECKING:
    from sluice_s3.app.index.objects.rows import Version

R = TypeVar("R")
T = TypeVar("T")

WRITING = 3
"""Connections of a worker for commits, which is also the number of groups in flight."""
LONG = 2
"""Connections of a worker for long reads. One more waits for notifications."""


class PostgresIndex(RegisteredIndex):
    """The index in Postgres, with at most `connections` connections of this process.

    The URL appears in no message. With `writer=False` it commits without an incarnation: for the command line beside a
    running server.
    """

    def __init__(
        self,
        url: str,
        run_dir: Path,
        *,
        durability: str = "full",
        commit_timeout: float = 20,
        commit_queue: int = 10_000,
        connections: int = 10,
        pooler: bool = False,
        timeout: float = 10,
        writer: bool = True,
        lost: Callable[[], None] | None = None,
        cut: Callable[[int], None] = lambda _: None,
        limit: float = 15,
    ) -> None:
        super().__init__(run_dir)
        self.database = Database(url, durability=durability, pooler=pooler, timeout=timeout)
        self._durability = durability
        self._commit_timeout = commit_timeout
        self._commit_queue = commit_queue
        self._registers = writer
        self._lost = lost
        self._cut = cut
        self._limit = limit
        self._heartbeat: Heartbeat | None = None
        writing = WRITING if writer else 1
        self.reads = self.database.pool(max(connections - writing - LONG - 1, 1))
        self._scans = Scans(self.database, self.database.pool(LONG, hot=False))
        self._writes = self.database.pool(writing)
        self._slots = writing
        self._lookups = VersionLoader(self.database, self.reads)
        self._settled = 0
        self._drawn = 0

    def __repr__(self) -> str:
        return f"PostgresIndex({self.database!r})"

    # life cycle

    async def start(self, *, migrate: bool = False) -> None:
        """Open the index; see `Index.start`."""
        try:
            await self._open(migrate)
            if self._registers:
                await self._register()
        except DomainError:
            await self.close()
            raise
        except Exception as error:
            await self.close()
            raise to_domain_error(error) from error
        except BaseException:
            await self.close()
            raise

    async def _open(self, upgrade: bool) -> None:
        make_directory(self._run_dir)
        self._opened.push_async_callback(self.database.close)
        self._opened.push_async_callback(self._lookups.close)
        connection = await self.database.connect()
        try:
            async with self.database.transaction(connection):
                await migrate.require_server(connection, durability=self._durability)
                due = upgrade and await migrate.revision(connection) != REVISION
            if due:
                await migrate.upgrade(self.database)
            async with self.database.transaction(connection):
                await migrate.check_revision(connection)
        finally:
            await connection.close()
        self._generation = Generation(self._run_dir / "generation")
        self._opened.callback(self._generation.close)
        timeout = max(self._commit_timeout, self.database.timeout)
        self._committer = GroupCommitter(
            self.database, self._writes, timeout=timeout, changed=self._generation.bump, lost=self._report_lost
        )
        self._writer = CommitScheduler(
            self._committer, slots=self._slots, timeout=self._commit_timeout, queue_limit=self._commit_queue
        )
        self._opened.push_async_callback(self._writer.close)

    async def check(self) -> None:
        """See `Index.check`."""
        await self._read(meta.any_row())

    def refuse(self, reason: str) -> None:
        """See `Index.refuse`."""
        self.database.refuse(reason)

    async def _register(self) -> None:
        await super()._register()
        self._committer.incarnation = self.incarnation
        heartbeat = self._heartbeat = Heartbeat(self.incarnation, self._beat, self._limit, self._report_lost, self._cut)
        listener = ChangeListener(self.database, self._generation.bump)
        for job in (heartbeat.run(), heartbeat.watch(), listener.run(), self._tidy()):
            task = asyncio.create_task(job)
            self._opened.push_async_callback(_ended, task)

    async def _beat(self, number: int, settled: int) -> list[Beat]:
        sign = BEAT, (self.incarnation, number, settled)

        async def give(connection: Connection) -> list[Beat]:
            async with self.database.transaction(connection):
                await runner.rows_of(connection, *sign, self.database.timeout)
                beats = await runner.read(connection, cluster.beats(), self.database.timeout)
                self._drawn = int(await connection.fetchval(lock_discovery.POSITION))
                return beats

        # a heartbeat that waits behind requests for too long lets its writer count as dead
        return await query_with_retry(self.database, self.reads, give, first=True)

    def _report_lost(self) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            lost()

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(10)
            try:
                await self._committer.tidy()
            except Exception as error:
                to_domain_error(error)  # logs the error; the next round retries

    # how transactions run

    async def _read(self, transaction: Transaction[T]) -> T:
        if self.database.pooler:
            return await self._read_snapshot(transaction)
        return await query_with_retry(self.database, self.reads, runner.Reading(transaction, self.database.timeout).run)

    async def _read_snapshot(self, transaction: Transaction[T]) -> T:
        return await query_with_retry(
            self.database, self.reads, runner.Reading(transaction, self.database.timeout).together
        )

    async def _scan(self, transaction: Transaction[T], *, snapshot: bool = False) -> T:
        return await self._scans.run(transaction, snapshot=snapshot)

    async def _commit(self, write: Write[..., T], arguments: tuple[Any, ...]) -> T:
        if write.discovers is not None:
            return await lock_discovery.commit_discovered(self._read, self._submit_as, write, arguments)
        return await self._submit(write, arguments)

    def _submit(self, write: Write[..., T], arguments: tuple[Any, ...]) -> asyncio.Future[T]:
        return self._submit_as(write, write.transaction(), arguments)

    def _submit_as(
        self,
        write: Write[..., T],
        function: Callable[..., Transaction[T]],
        arguments: tuple[Any, ...],
        more_locks: Iterable[int] = (),
    ) -> asyncio.Future[T]:
        """Commit `function` under the locks of `write` and those in `more_locks`."""
        self._require_up()
        return self._writer.submit(write, fenced(function), arguments, locks_of(write, arguments, more_locks))

    def _require_up(self) -> None:
        if self.database.is_down:
            raise self.database.unavailable()

    def _start(self, write: Write[..., CommitResult], arguments: Callable[[str], tuple[Any, ...]]) -> DeferredCommit:
        self._require_up()
        return self._writer.begin(write, arguments)

    # overrides of `Index`

    async def version(self, bucket_id: int, key: str, version_id: str | None = None) -> Version | None:
        """See `Index.version`."""
        if version_id is None and not self.database.pooler:
            return await self._lookups.find(bucket_id, key)
        return await self._read(objects.version(bucket_id, key, version_id))

    def is_writer_dead(self, writer: WriterRow) -> bool:
        """See `Index.is_writer_dead`.

        Liveness locks answer for writers of this gateway, heartbeats for others.
        """
        if (self._life_locks / writer.lock_name).exists():
            return is_unlocked(self._life_locks, writer.lock_name)
        return self._heartbeat is not None and self._heartbeat.is_silent(writer.incarnation)

    def is_orphaned(self, writer: WriterRow) -> bool:
        """See `Index.is_orphaned`."""
        if (self._life_locks / writer.lock_name).exists():
            return not is_unlocked(self._life_locks, writer.lock_name)
        return self._heartbeat is None or self._heartbeat.is_orphaned(writer.incarnation)

    @property
    def drawn(self) -> int:
        """See `Index.drawn`."""
        return self._drawn

    async def make_durable(self) -> None:
        """See `Index.make_durable`.

        A fully synced commit also syncs all commits before it.
        """
        if self._durability != "full":
            connection = await self._writes.acquire()
            try:
                await connection.execute(f"{self.database.begin}; SET LOCAL synchronous_commit = on")
                await connection.execute("SELECT pg_current_xact_id()")
                await connection.execute("COMMIT")
            except BaseException as error:
                self._writes.drop(connection)
                if isinstance(error, Exception):
                    raise to_domain_error(error) from None
                raise
            self._writes.release(connection)

    async def delete_versions(self, bucket_id: int, entries: Sequence[Deletion]) -> list[Done]:
        """See `Index.delete_versions`.

        It takes several transactions, because each may hold at most `MAX_LOCKS` locks.
        """
        results: list[Done] = []
        for first in range(0, len(entries), MAX_LOCKS):
            batch = entries[first : first + MAX_LOCKS]
            try:
                outcomes: list[Done] = await self._commit(Index.delete_versions, (bucket_id, batch))
                results += outcomes
            except DomainError as error:
                if not results:
                    raise
                results += [type(error)(**error.detail) for _ in batch]
        return results

    async def removals_are_held(self) -> bool:
        """See `Index.removals_are_held`."""
        return await query_with_retry(self.database, self.reads, partial(removal_hold.is_held, self.database))

    many_hosts = True

    def across(self, oldest: Callable[[], int]) -> Callable[[], int]:
        """See `Index.across`."""
        assert self._heartbeat is not None
        self._heartbeat.oldest = oldest
        return self._heartbeat.horizon

    # numbers are not committed in order: a scan by number stops at the settled number

    async def barrier(self) -> int:
        """Return the last number drawn, once all groups with numbers up to it have ended."""
        self._settled = max(self._settled, await lock_discovery.sequence_barrier(self.database, self.reads))
        return self._settled

    async def _read_settled(self, read: Callable[[], Transaction[list[R]]], number: Callable[[R], int]) -> list[R]:
        rows = await self._read(read())
        if rows and number(rows[-1]) > self._settled:
            await self.barrier()
            rows = await self._read(read())
        return [row for row in rows if number(row) <= self._settled]

    async def changes(
        self, after: int, until: int | None = None, store: str = DEFAULT, completed: int | None = None
    ) -> Changes:
        """See `Index.changes`."""
        if until is None:
            until = await self.barrier()
        return await self._scan(journal_queries.changes_since(after, until, store, completed), snapshot=True)

    # reads whose rows do not fit into memory

    async def referenced_bytes(self, prefixes: Sequence[str], size_of: Callable[[str], int]) -> dict[str, int]:
        """See `Index.referenced_bytes`."""
        return await self._scans.referenced_bytes(prefixes, size_of)

    async def live_bytes(self, packed: Callable[[str], tuple[int, int] | None]) -> list[tuple[Pack, int]]:
        """See `Index.live_bytes`."""
        return await self._scans.live_bytes(packed)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
