"""The index in one SQLite file: reads on the event loop's own connection, commits in groups in a thread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import apsw

from app.index import checkpoint, holders, migrate, run
from app.index.base import Chained
from app.index.connection import open_connection, refuse_network, translated
from app.index.generation import Generation
from app.index.incarnation import is_gone
from app.index.life import Life
from app.index.long_methods import LongMethods
from app.index.methods import Methods
from app.index.reserve import Reserve
from app.index.rows import AccessKey, Bucket, Committed, Pack, Version
from app.index.rows import Writer as WriterRow
from app.index.statements import VERSION
from app.index.steps import Transaction
from app.index.transactions import accounts, bucket
from app.index.writer import Writer

T = TypeVar("T")


class SqliteIndex(Life, LongMethods, Methods):
    """See `app.index.base.Index`. Its read methods never suspend, so that no read transaction spans an await.

    With `writer=False` it commits without an incarnation: for the command line beside a running server, which makes
    no blobs. `local_only=False` lets tests put it on a network filesystem.
    """

    def __init__(
        self,
        path: Path,
        run_dir: Path,
        *,
        durability: str = "full",
        commit_timeout: float = 20,
        commit_queue: int = 10_000,
        writer: bool = True,
        local_only: bool = True,
        lost: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(run_dir)
        self._path = path
        self._durability = durability
        self._commit_timeout = commit_timeout
        self._commit_queue = commit_queue
        self._registers = writer
        self._local_only = local_only
        self._lost = lost
        self._wal = path.with_name(path.name + "-wal")

    # life

    async def start(self, *, migrate: bool = False) -> None:
        """Open; see `Index.start`."""
        try:
            self._open(migrate)
            if self._registers:
                await self._register()
        except (apsw.Error, OSError) as error:
            await self.close()
            raise translated(error) from error
        except BaseException:
            await self.close()
            raise

    def _open(self, upgrade: bool) -> None:
        directory = self._path.parent
        if upgrade:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._local_only:
            refuse_network(directory)
        lock_path = self._run_dir / "index.lock"
        if upgrade:
            migrate.upgrade(self._path, lock_path)
        reader = self._connect()
        self._opened.callback(reader.close)
        migrate.check(reader)
        self._cursor = reader.cursor()
        self._generation = Generation(self._run_dir / "generation")
        self._opened.callback(self._generation.close)
        self._writer = Writer(
            self._connect,
            lock_path,
            timeout=self._commit_timeout,
            queue_limit=self._commit_queue,
            changed=self._generation.bump,
            lost=self._lost,
            reserve=Reserve(self._wal),
        )
        self._writer.start()
        self._opened.push_async_callback(self._writer.close)

    async def _register(self) -> None:
        await super()._register()
        self._writer.incarnation = self.incarnation
        checkpointer = checkpoint.Checkpointer(
            self._connect, self._wal, self._run_dir / "checkpoint.lock", self._run_dir / "index.lock"
        )
        checkpointer.start()
        self._opened.push_async_callback(asyncio.to_thread, checkpointer.stop)

    def _connect(self) -> apsw.Connection:
        return open_connection(self._path, durability=self._durability)

    # how transactions run

    async def _read(self, transaction: Transaction[T]) -> T:
        return self._now(transaction)

    async def _read_together(self, transaction: Transaction[T]) -> T:
        try:
            return run.snapshot(self._cursor, transaction)
        except apsw.Error as error:
            raise translated(error) from error

    async def _commit(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        answer: T = await self._writer.submit(function, arguments)
        return answer

    def _submit(self, function: Callable[..., Transaction[T]], *arguments: object) -> asyncio.Future[T]:
        return self._writer.submit(function, arguments)

    def _begin(
        self, function: Callable[..., Transaction[Committed]], arguments: Callable[[str], tuple[object, ...]]
    ) -> Chained:
        return self._writer.begin(function, arguments)

    async def _commit_and_notify(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        answer: T = await self._writer.submit(function, arguments, notifies=True)
        return answer

    async def _long(self, transaction: Transaction[T], *, together: bool = False) -> T:
        """See `LongMethods`."""
        drive = run.snapshot if together else run.read
        return await self._on_own(lambda connection: drive(connection.cursor(), transaction))

    async def _on_own(self, function: Callable[[apsw.Connection], T]) -> T:
        """Run a function in a thread, on a connection of its own."""

        def call() -> T:
            connection = self._connect()
            try:
                return function(connection)
            finally:
                connection.close()

        try:
            return await asyncio.to_thread(call)
        except apsw.Error as error:
            raise translated(error) from error

    # what differs from `Methods`

    @property
    def wal_bytes(self) -> int:
        """See `Index.wal_bytes`."""
        return checkpoint.wal_size(self._wal)

    def _now(self, transaction: Transaction[T]) -> T:
        try:
            return run.read(self._cursor, transaction)
        except apsw.Error as error:
            raise translated(error) from error

    def access_key_now(self, access_key: str) -> AccessKey | None:
        """See `Index.access_key_now`."""
        return self._now(accounts.access_key(access_key))

    def bucket_now(self, name: str) -> Bucket | None:
        """See `Index.bucket_now`."""
        return self._now(bucket.bucket(name))

    def version_now(self, bucket_id: int, key: str) -> Version | None:
        """See `Index.version_now`. Without the driver of transactions, which would cost as much as the query."""
        try:
            rows = self._cursor.execute(VERSION.sql, (bucket_id, key)).fetchall()
        except apsw.Error as error:
            raise translated(error) from error
        return Version._make(rows[0]) if rows else None

    async def version(self, bucket_id: int, key: str, version_id: str | None = None) -> Version | None:
        """See `Index.version`."""
        if version_id is None:
            return self.version_now(bucket_id, key)
        return await super().version(bucket_id, key, version_id)

    def writer_is_gone(self, writer: WriterRow) -> bool:
        """See `Index.writer_is_gone`."""
        return is_gone(self._life_locks, writer.lock_name)

    async def held_bytes(self, prefixes: Sequence[str], size_of: Callable[[str], int]) -> dict[str, int]:
        """See `Index.held_bytes`."""
        return await self._on_own(lambda connection: holders.held_bytes(connection, prefixes, size_of))

    async def live_bytes(self, packed: Callable[[str], tuple[int, int] | None]) -> list[tuple[Pack, int]]:
        """See `Index.live_bytes`."""
        return await self._on_own(lambda connection: holders.live_bytes(connection, packed))

    async def make_durable(self) -> None:
        """See `Index.make_durable`. Commits that are not in the log any more were synced when they were copied."""
        if self._durability != "full":
            await asyncio.to_thread(_sync_file, self._wal)


def _sync_file(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise translated(error) from error
    finally:
        os.close(descriptor)
