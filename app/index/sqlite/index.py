"""The index in one SQLite file.

Reads use the event loop's own connection. A thread commits in groups.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import apsw

from sluice_s3.app.errors import DomainError, IndexBehind, StoreUnavailable
from sluice_s3.app.index.cluster.rows import Writer as WriterRow
from sluice_s3.app.index.engine.declared import DeferredCommit, Write
from sluice_s3.app.index.engine.generation import Generation
from sluice_s3.app.index.engine.liveness_lock import is_unlocked
from sluice_s3.app.index.engine.registration import RegisteredIndex
from sluice_s3.app.index.engine.removal_hold import is_held
from sluice_s3.app.index.meta import transactions as meta
from sluice_s3.app.index.meta.statements import SEQUENCE
from sluice_s3.app.index.objects import transactions as objects
from sluice_s3.app.index.objects.rows import CommitResult, Version
from sluice_s3.app.index.objects.statements import VERSION
from sluice_s3.app.index.packs.rows import Pack
from sluice_s3.app.index.sql.transaction import Transaction
from sluice_s3.app.index.sqlite import checkpoint, migrate, runner, scans
from sluice_s3.app.index.sqlite.commit_thread import CommitThread
from sluice_s3.app.index.sqlite.commit_witness import CommitWitness
from sluice_s3.app.index.sqlite.connection import (
    database_files,
    is_corrupt,
    one_row,
    open_connection,
    refuse_network,
    to_domain_error,
)
from sluice_s3.app.index.sqlite.disk_reserve import DiskReserve
from sluice_s3.app.index.sqlite.files import IndexFiles
from sluice_s3.app.private_files import check_owners, make_directory

T = TypeVar("T")


class SqliteIndex(RegisteredIndex):
    """The index in one SQLite file; see `app.index.interface.Index`.

    Its read methods never suspend, so that no read transaction spans an await. With `writer=False` it commits without
    an incarnation: for the command line beside a running server, which creates no blobs. `local_only=False` lets tests
    put the index on a network filesystem.
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
        self._files = IndexFiles(path)
        self._corrupt = False
        """Whether SQLite has reported that the file is damaged."""
        self._behind = ""
        """Why this is an older state of the index; empty when it is not. An older state refuses commits."""

    # life cycle

    async def start(self, *, migrate: bool = False) -> None:
        """Open the index; see `Index.start`."""
        try:
            self._open(migrate)
            if self._registers:
                await self._register()
        except (apsw.Error, OSError) as error:
            await self.close()
            raise to_domain_error(error) from error
        except BaseException:
            await self.close()
            raise

    def _open(self, upgrade: bool) -> None:
        directory = self._path.parent
        if upgrade:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_directory(self._run_dir)
        if self._local_only:
            refuse_network(directory)
        check_owners(database_files(self._path))
        lock_path = self._run_dir / "index.lock"
        if upgrade:
            migrate.upgrade(self._path, lock_path)
        reader = self._connect()
        self._opened.callback(reader.close)
        migrate.require_revision(reader)
        self._cursor = reader.cursor()
        self._files.require()
        self._witness = CommitWitness(self._run_dir, self._path)
        self._opened.callback(self._witness.close)
        self._compare(reader)
        self._generation = Generation(self._run_dir / "generation")
        self._opened.callback(self._generation.close)
        self._writer = CommitThread(
            self._connect,
            lock_path,
            timeout=self._commit_timeout,
            queue_limit=self._commit_queue,
            changed=self._generation.bump,
            lost=self._lost,
            reserve=DiskReserve(self._wal),
            files=self._files,
            witness=self._witness,
            inline=self._durability != "full",
        )
        self._writer.start()
        self._opened.push_async_callback(self._writer.close)

    def _compare(self, reader: apsw.Connection) -> None:
        """Refuse every commit when the index lacks acknowledged commits.

        A new commit would hide the loss.
        """
        witnessed = self._witness.read()  # read first: a running server may commit meanwhile
        (last_sequence,) = one_row(reader, SEQUENCE.sql)
        if last_sequence < witnessed:
            self._behind = (
                f"the index lacks acknowledged writes: it ends at commit {last_sequence}, and commit {witnessed} "
                "was made. Its write-ahead log was removed or cut, or an older copy took its place. `sluice recover` "
                "brings it up to date"
            )
            self._files.lose(self._behind)

    async def _register(self) -> None:
        self._require_newest()
        await super()._register()
        self._writer.incarnation = self.incarnation
        checkpointer = checkpoint.Checkpointer(
            self._connect, self._wal, self._run_dir / "checkpoint.lock", self._run_dir / "index.lock"
        )
        checkpointer.start()
        self._opened.push_async_callback(asyncio.to_thread, checkpointer.stop)

    def _connect(self) -> apsw.Connection:
        return open_connection(self._path, durability=self._durability)

    async def check(self) -> None:
        """See `Index.check`."""
        self._require_newest()
        self._files.require()
        if self._corrupt or self._writer.corrupt:
            raise StoreUnavailable(reason="the index is damaged")
        self._now(meta.any_row())

    def _require_newest(self) -> None:
        if self._behind:
            raise IndexBehind(reason=self._behind, span_ms=0)

    def refuse(self, reason: str) -> None:
        """See `Index.refuse`."""
        self._files.lose(reason)
        self._cursor = _Refused(reason)  # type: ignore[assignment]

    def _translated(self, error: Exception) -> DomainError:
        self._corrupt = self._corrupt or is_corrupt(error)
        return to_domain_error(error)

    # how transactions run

    async def _read(self, transaction: Transaction[T]) -> T:
        return self._now(transaction)

    async def _read_snapshot(self, transaction: Transaction[T]) -> T:
        try:
            return runner.snapshot(self._cursor, transaction)
        except apsw.Error as error:
            raise self._translated(error) from error

    async def _commit(self, write: Write[..., T], arguments: tuple[Any, ...]) -> T:
        answer: T = await self._writer.submit(write, arguments)
        return answer

    def _start(self, write: Write[..., CommitResult], arguments: Callable[[str], tuple[Any, ...]]) -> DeferredCommit:
        return self._writer.begin(write, arguments)

    async def _scan(self, transaction: Transaction[T], *, snapshot: bool = False) -> T:
        drive = runner.snapshot if snapshot else runner.read
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
            raise self._translated(error) from error

    # overrides of `Index`

    @property
    def drawn(self) -> int:
        """See `Index.drawn`."""
        return self._witness.read()

    @property
    def wal_bytes(self) -> int:
        """See `Index.wal_bytes`."""
        return checkpoint.wal_size(self._wal)

    def _now(self, transaction: Transaction[T]) -> T:
        try:
            return runner.read(self._cursor, transaction)
        except apsw.Error as error:
            raise self._translated(error) from error

    async def version(self, bucket_id: int, key: str, version_id: str | None = None) -> Version | None:
        """See `Index.version`.

        The current object bypasses the transaction runner, which would cost as much as the query.
        """
        if version_id is not None:
            return self._now(objects.version(bucket_id, key, version_id))
        try:
            rows = self._cursor.execute(VERSION.sql, (bucket_id, key)).fetchall()
        except apsw.Error as error:
            raise self._translated(error) from error
        return tuple.__new__(Version, rows[0]) if rows else None

    def is_writer_dead(self, writer: WriterRow) -> bool:
        """See `Index.is_writer_dead`."""
        return is_unlocked(self._life_locks, writer.lock_name)

    async def referenced_bytes(self, prefixes: Sequence[str], size_of: Callable[[str], int]) -> dict[str, int]:
        """See `Index.referenced_bytes`."""
        return await self._on_own(lambda connection: scans.referenced_bytes(connection, prefixes, size_of))

    async def live_bytes(self, packed: Callable[[str], tuple[int, int] | None]) -> list[tuple[Pack, int]]:
        """See `Index.live_bytes`."""
        return await self._on_own(lambda connection: scans.live_bytes_per_pack(connection, packed))

    async def removals_are_held(self) -> bool:
        """See `Index.removals_are_held`."""
        try:
            return is_held(self._run_dir)
        except OSError as error:
            raise to_domain_error(error) from error

    async def make_durable(self) -> None:
        """See `Index.make_durable`.

        Commits that have left the log were synced when they were copied back.
        """
        if self._durability != "full":
            await asyncio.to_thread(_sync_file, self._wal)


class _Refused:
    """Replaces the cursor of an index that refuses reads."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def execute(self, *_: object) -> NoReturn:
        raise StoreUnavailable(reason=self._reason)


def _sync_file(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise to_domain_error(error) from error
    finally:
        os.close(descriptor)
