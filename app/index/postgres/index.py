"""The index in Postgres. See `app.index.base.Index`, and README.md here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from app.errors import DomainError, NotNow, StoreUnavailable
from app.index.base import Chained, Deletion, Done
from app.index.gateway_statements import BEAT
from app.index.gateways import Beat
from app.index.generation import Generation
from app.index.heart import Heart
from app.index.incarnation import is_gone
from app.index.leased import fenced
from app.index.life import Life
from app.index.methods import Methods
from app.index.postgres import migrate, places, running
from app.index.postgres.committing import Committer
from app.index.postgres.errors import translated
from app.index.postgres.link import Connection, Link, asked
from app.index.postgres.locks import MOST, locks_of
from app.index.postgres.lookups import Lookups
from app.index.postgres.reading import Readings
from app.index.postgres.watch import Watch
from app.index.postgres.writer import Writer
from app.index.rows import Committed, Conditions, Discard, NewVersion, Part, Unhashed, Upload
from app.index.rows import Writer as WriterRow
from app.index.schema import REVISION
from app.index.steps import Transaction
from app.index.telling import told
from app.index.transactions import discards, gateways, intents, multipart, objects

if TYPE_CHECKING:
    from app.index.rows import Version

T = TypeVar("T")

WRITING = 3
"""Connections of a worker that commit: as many groups are on their way at once."""
LONG = 2
"""And those for what may take long; one more waits for notifications."""


class PostgresIndex(Life, Readings, Methods):
    """`connections` are those of this process at most. Nothing of the URL is ever in a message.

    With `writer=False` it commits without an incarnation: for the command line beside a running server.
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
        limit: float = 15,
    ) -> None:
        super().__init__(run_dir)
        self.link = Link(url, durability=durability, pooler=pooler, timeout=timeout)
        self._durability = durability
        self._commit_timeout = commit_timeout
        self._commit_queue = commit_queue
        self._registers = writer
        self._lost = lost
        self._limit = limit
        self._heart: Heart | None = None
        writing = WRITING if writer else 1
        self.reads = self.link.pool(max(connections - writing - LONG - 1, 1))
        self.long = self.link.pool(LONG, hot=False)
        self._writes = self.link.pool(writing)
        self._slots = writing
        self._lookups = Lookups(self.link, self.reads)
        self._settled = 0

    def __repr__(self) -> str:
        return f"PostgresIndex({self.link!r})"

    # life

    async def start(self, *, migrate: bool = False) -> None:
        """Open; see `Index.start`."""
        try:
            await self._open(migrate)
            if self._registers:
                await self._register()
        except DomainError:
            await self.close()
            raise
        except Exception as error:
            await self.close()
            raise translated(error) from error
        except BaseException:
            await self.close()
            raise

    async def _open(self, upgrade: bool) -> None:
        self._run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._opened.push_async_callback(self.link.close)
        self._opened.push_async_callback(self._lookups.close)
        connection = await self.link.connect()
        try:
            async with self.link.transaction(connection):
                await migrate.check(connection, durability=self._durability)
                due = upgrade and await migrate.revision(connection) != REVISION
            if due:
                await migrate.upgrade(self.link)
            async with self.link.transaction(connection):
                await migrate.check_revision(connection)
        finally:
            await connection.close()
        self._generation = Generation(self._run_dir / "generation")
        self._opened.callback(self._generation.close)
        patience = max(self._commit_timeout, self.link.timeout)
        self._committer = Committer(
            self.link, self._writes, timeout=patience, changed=self._generation.bump, lost=self._tell_lost
        )
        self._writer = Writer(
            self._committer, slots=self._slots, timeout=self._commit_timeout, queue_limit=self._commit_queue
        )
        self._opened.push_async_callback(self._writer.close)

    async def _register(self) -> None:
        await super()._register()
        self._committer.incarnation = self.incarnation
        self._heart = Heart(self.incarnation, self._beat, self._limit, self._tell_lost)
        for job in (self._heart.run(), Watch(self.link, self._generation.bump).run(), self._tidy()):
            task = asyncio.create_task(job)
            self._opened.push_async_callback(_ended, task)

    async def _beat(self, number: int, settled: int) -> list[Beat]:
        sign = BEAT, (self.incarnation, number, settled)

        async def give(connection: Connection) -> list[Beat]:
            async with self.link.transaction(connection):
                await running.rows_of(connection, *sign, self.link.timeout)
                return await running.read(connection, gateways.beats(), self.link.timeout)

        # who waits behind requests for too long is taken for dead
        return await asked(self.link, self.reads, give, first=True)

    def _tell_lost(self) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            lost()

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(10)
            try:
                await self._committer.tidy()
            except Exception as error:
                translated(error)  # tried again

    # how transactions run

    async def _read(self, transaction: Transaction[T]) -> T:
        if self.link.pooler:
            return await self._read_together(transaction)
        return await asked(self.link, self.reads, running.Reading(transaction, self.link.timeout).run)

    async def _read_together(self, transaction: Transaction[T]) -> T:
        return await asked(self.link, self.reads, running.Reading(transaction, self.link.timeout).together)

    async def look(self, transaction: Transaction[T]) -> T:
        """`_read`, for `places`."""
        return await self._read(transaction)

    async def _commit(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        answer: T = await self._submit(function, *arguments)
        return answer

    async def commit_under(
        self,
        function: Callable[..., Transaction[T]],
        guarded: Callable[..., Transaction[T]],
        also: Iterable[int],
        *arguments: object,
    ) -> T:
        """Commit `guarded` under the locks of `function` and some more."""
        self._refuse_away()
        answer: T = await self._writer.submit(fenced(guarded), arguments, locks=locks_of(function, arguments, also))
        return answer

    def _submit(self, function: Callable[..., Transaction[T]], *arguments: object) -> asyncio.Future[T]:
        self._refuse_away()
        return self._writer.submit(fenced(function), arguments, locks=locks_of(function, arguments))

    def _refuse_away(self) -> None:
        if self.link.away:
            raise StoreUnavailable(reason="the index is away")

    def _begin(
        self, function: Callable[..., Transaction[Committed]], arguments: Callable[[str], tuple[object, ...]]
    ) -> Chained:
        self._refuse_away()
        return self._writer.begin(function, arguments)

    async def _commit_and_notify(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        self._refuse_away()
        answer: T = await self._writer.submit(
            fenced(function), arguments, notifies=True, locks=locks_of(function, arguments)
        )
        return answer

    # what differs from `Methods`

    @property
    def wal_bytes(self) -> int:
        """See `Index.wal_bytes`."""
        return 0

    async def version(self, bucket_id: int, key: str, version_id: str | None = None) -> Version | None:
        """See `Index.version`."""
        if version_id is None and not self.link.pooler:
            return await self._lookups.find(bucket_id, key)
        return await super().version(bucket_id, key, version_id)

    def version_now(self, bucket_id: int, key: str) -> Version | None:
        """See `Index.version_now`."""
        raise NotNow

    def writer_is_gone(self, writer: WriterRow) -> bool:
        """See `Index.writer_is_gone`. The kernel tells it of those of this gateway, their silence of others."""
        if (self._life_locks / writer.lock_name).exists():
            return is_gone(self._life_locks, writer.lock_name)
        return self._heart is not None and self._heart.silent(writer.incarnation)

    async def make_durable(self) -> None:
        """See `Index.make_durable`. A commit with full sync has all before it synced, too."""
        if self._durability != "full":
            connection = await self._writes.acquire()
            try:
                await connection.execute(f"{self.link.begin}; SET LOCAL synchronous_commit = on")
                await connection.execute("SELECT pg_current_xact_id()")
                await connection.execute("COMMIT")
            except BaseException as error:
                self._writes.drop(connection)
                if isinstance(error, Exception):
                    raise translated(error) from None
                raise
            self._writes.release(connection)

    async def delete_versions(self, bucket_id: int, entries: Sequence[Deletion]) -> list[Done]:
        """See `Index.delete_versions`; not in one transaction, because each holds no more than so many locks."""
        answers: list[Done] = []
        for first in range(0, len(entries), MOST):
            some = entries[first : first + MOST]
            try:
                answers += await self._commit(told(objects.delete_versions), bucket_id, some)
            except DomainError as error:
                if not answers:
                    raise
                answers += [type(error)(**error.detail) for _ in some]
        return answers

    many_hosts = True
    at_once = False

    def across(self, oldest: Callable[[], int]) -> Callable[[], int]:
        """See `Gateways.across`."""
        assert self._heart is not None
        self._heart.oldest = oldest
        return self._heart.horizon

    # what must be looked up before its locks are known (`places`)

    async def copy_version(
        self, source_seq: int, bucket_id: int, key: str, new: NewVersion, conditions: Conditions | None = None
    ) -> Committed:
        """See `Index.copy_version`."""
        return await places.of_source(self, told(objects.copy_version), source_seq, bucket_id, key, new, conditions)

    async def copy_part(self, source_seq: int, upload: Upload, part: Part) -> Committed:
        """See `Index.copy_part`."""
        return await places.of_source(self, multipart.copy_part, source_seq, upload, part)

    async def set_hashes(self, seq: int, body: str, etag: str, algorithm: str, checksum: str) -> bool:
        """See `Trees.set_hashes`."""
        return await places.of_source(self, intents.set_hashes, seq, body, etag, algorithm, checksum)

    async def commit_intent(self, number: int) -> Committed | None:
        """See `Trees.commit_intent`."""
        return await places.of_intent(self, intents.commit_intent, number)

    async def drop_intent(self, number: int) -> None:
        """See `Trees.drop_intent`."""
        await places.of_intent(self, intents.drop_intent, number)

    # numbers are not committed in their order: who goes through rows by number stops where all is settled

    async def barrier(self) -> int:
        """The last number that was drawn, once all that drew one up to it have ended."""
        self._settled = max(self._settled, await places.barrier(self))
        return self._settled

    async def _in_order(self, read: Callable[[], Transaction[list[T]]], number: Callable[[T], int]) -> list[T]:
        """Rows in the order of their numbers, among which none will be committed later."""
        found = await self._read(read())
        if found and number(found[-1]) > self._settled:
            await self.barrier()
            found = await self._read(read())
        return [row for row in found if number(row) <= self._settled]

    async def discards(self, after: int, limit: int) -> list[Discard]:
        """See `Index.discards`."""
        return await self._in_order(lambda: discards.discards(after, limit), lambda entry: entry.id)

    async def unhashed(self, after: int, limit: int) -> list[Unhashed]:
        """See `Trees.unhashed`."""
        return await self._in_order(lambda: intents.unhashed(after, limit), lambda entry: entry.seq)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
