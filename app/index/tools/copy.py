"""Copies one index to another of any engine, and compares them.

A comparison is by a count and a hash of every table. Rows are read in the order of their keys, each side in one
snapshot of its index, and never all in memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import apsw
import orjson
import xxhash
from sqlalchemy import Table

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.meta.statements import POSITION
from sluice_s3.app.index.schema.tables import GROUP_BITS, REVISION, metadata, operations, sequence
from sluice_s3.app.index.sqlite import migrate
from sluice_s3.app.index.sqlite.connection import database_files, one_row, open_connection, refuse_network
from sluice_s3.app.private_files import check_owners, make_directory

if TYPE_CHECKING:
    from sluice_s3.app.index.postgres.database import Connection  # it needs an extra

ROWS_PER_BATCH = 2000
TABLES: tuple[Table, ...] = tuple(table for table in metadata.sorted_tables if table not in (operations, sequence))
"""Tables to copy. The commit sequence continues after its last number. Operations mean nothing to another index."""
GENERATION = "generation"
"""The note in `meta` that counts changes for the caches of gateways on Postgres."""

Progress = Callable[[str, int], None]
Row = Sequence[Any]


class TableDigest(NamedTuple):
    """The number of rows and the hash of a table."""

    rows: int
    hash: str


class CopyEndpoint(Protocol):
    """An index to copy from or to."""

    def rows(self, table: Table) -> AsyncIterator[list[Row]]:
        """Yield all rows of a table in the order of its key, in batches."""
        ...

    async def add(self, table: Table, rows: list[Row]) -> None:
        """Add rows, to be committed by `finish`."""
        ...

    async def clear(self, table: Table) -> None:
        """Remove all rows of a table, to be committed by `finish`."""
        ...

    async def position(self) -> int:
        """Return the last number of the commit sequence."""
        ...

    async def finish(self, position: int) -> None:
        """Commit, and continue the commit sequence after `position`."""
        ...


def _ordered(table: Table) -> str:
    keys = ", ".join(column.name for column in table.primary_key)
    where = f" WHERE name != '{GENERATION}'" if table.name == "meta" else ""
    columns = ", ".join(column.name for column in table.c)
    return f"SELECT {columns} FROM {table.name}{where} ORDER BY {keys}"  # noqa: S608 - names of ours


class SqliteEndpoint:
    """An index in an SQLite file."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def rows(self, table: Table) -> AsyncIterator[list[Row]]:
        """See `CopyEndpoint`."""
        cursor = self._connection.execute(_ordered(table))
        batch: list[Row] = []
        for row in cursor:
            batch.append(row)
            if len(batch) == ROWS_PER_BATCH:
                yield batch
                batch = []
        yield batch

    async def add(self, table: Table, rows: list[Row]) -> None:
        """See `CopyEndpoint`."""
        marks = ", ".join("?" * len(table.c))
        self._connection.executemany(f"INSERT INTO {table.name} VALUES ({marks})", rows)  # noqa: S608

    async def clear(self, table: Table) -> None:
        """See `CopyEndpoint`."""
        self._connection.execute(f"DELETE FROM {table.name}")  # noqa: S608

    async def position(self) -> int:
        """See `CopyEndpoint`."""
        position: int = one_row(self._connection, "SELECT value FROM sequence")[0]
        return position

    async def finish(self, position: int) -> None:
        """See `CopyEndpoint`."""
        self._connection.execute("UPDATE sequence SET value = ?", (position,))
        self._connection.execute("COMMIT")


class PostgresEndpoint:
    """An index in Postgres."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def rows(self, table: Table) -> AsyncIterator[list[Row]]:
        """See `CopyEndpoint`."""
        from sluice_s3.app.index.postgres.dialect import unescape

        cursor = await self._connection.cursor(_ordered(table))
        while found := await cursor.fetch(ROWS_PER_BATCH):
            yield [[unescape(value) if type(value) is str else value for value in row] for row in found]

    async def add(self, table: Table, rows: list[Row]) -> None:
        """See `CopyEndpoint`."""
        from sluice_s3.app.index.postgres.dialect import escape

        plain = [tuple(escape(value) if type(value) is str else value for value in row) for row in rows]
        await self._connection.copy_records_to_table(table.name, records=plain)

    async def clear(self, table: Table) -> None:
        """See `CopyEndpoint`."""
        if table.name == "meta":
            await self._connection.execute(f"DELETE FROM meta WHERE name != '{GENERATION}'")  # noqa: S608
        else:
            await self._connection.execute(f"TRUNCATE {table.name}")

    async def position(self) -> int:
        """See `CopyEndpoint`."""
        return int(await self._connection.fetchval(str(POSITION)))

    async def finish(self, position: int) -> None:
        """See `CopyEndpoint`."""
        await self._connection.execute(f"SELECT setval('commit_sequence', {(position >> GROUP_BITS) + 1})")
        await self._connection.execute("COMMIT")


@asynccontextmanager
async def open_endpoint(url: str, *, write: bool = False) -> AsyncIterator[CopyEndpoint]:
    """Open the index of a URL in one snapshot.

    With `write`, creates it if it is missing. Raises DomainError, apsw.Error.
    """
    async with AsyncExitStack() as stack:
        if url.startswith("sqlite:///"):
            yield _sqlite(Path(url.partition(":///")[2]), stack, write)
            return
        yield await _postgres(url, stack, write)


async def _postgres(url: str, stack: AsyncExitStack, write: bool) -> PostgresEndpoint:
    from sluice_s3.app.index.postgres import migrate
    from sluice_s3.app.index.postgres.database import Database
    from sluice_s3.app.index.postgres.runner import SNAPSHOT

    link = Database(url)
    stack.push_async_callback(link.close)
    connection = await link.connect()
    stack.push_async_callback(connection.close)
    await migrate.require_server(connection, durability="full" if write else "relaxed")
    if write and await migrate.revision(connection) != REVISION:
        await migrate.upgrade(link)
    await migrate.check_revision(connection)
    # no time limit: the connection may stay idle while the other side reads a large table
    await connection.execute("SET idle_in_transaction_session_timeout = 0")
    await connection.execute(link.begin if write else SNAPSHOT)
    return PostgresEndpoint(connection)


def _sqlite(path: Path, stack: AsyncExitStack, write: bool) -> SqliteEndpoint:
    check_owners(database_files(path))
    if write:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        run_dir = path.parent / "run"
        make_directory(run_dir)
        refuse_network(path.parent)
        migrate.upgrade(path, run_dir / "index.lock")
    connection = open_connection(path)
    stack.callback(connection.close)
    migrate.require_revision(connection)
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    return SqliteEndpoint(connection)


def copy_file(path: Path, target: Path) -> None:
    """Copy an SQLite index with its log, and upgrade the copy.

    The upgrade is to the revision of this code. Raises DomainError, apsw.Error.
    """
    with (
        closing(open_connection(path)) as source,
        closing(apsw.Connection(str(target))) as copy,
        copy.backup("main", source, "main") as backup,
    ):
        backup.step(-1)
    migrate.upgrade(target, target.with_name("lock"), keep=False)


async def digest_tables(end: CopyEndpoint, table: Table) -> TableDigest:
    """Return the number of rows and the hash of a table."""
    counted = _Counted()
    async for rows in end.rows(table):
        counted.add(rows)
    return counted.digest


class _Counted:
    def __init__(self) -> None:
        self._rows = 0
        self._hash = xxhash.xxh3_128()

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._rows += 1
            self._hash.update(orjson.dumps(list(row)))

    @property
    def digest(self) -> TableDigest:
        return TableDigest(self._rows, self._hash.hexdigest())


async def copy(source: CopyEndpoint, target: CopyEndpoint, progress: Progress) -> dict[str, TableDigest]:
    """Copy every table into an empty index.

    Returns what was read, by table. Raises StoreUnavailable.
    """
    for table in TABLES:
        if (await digest_tables(target, table)).rows:
            raise StoreUnavailable(reason=f"the index to copy to is in use: its table {table.name} is not empty")
    return await _copy_rows(source, target, progress)


async def replace(source: CopyEndpoint, target: CopyEndpoint, progress: Progress) -> None:
    """Replace all rows of one index by those of another, in one transaction."""
    for table in TABLES:
        await target.clear(table)
    await _copy_rows(source, target, progress)


async def _copy_rows(source: CopyEndpoint, target: CopyEndpoint, progress: Progress) -> dict[str, TableDigest]:
    digests: dict[str, TableDigest] = {}
    for table in TABLES:
        counted = _Counted()
        async for rows in source.rows(table):
            if rows:
                await target.add(table, rows)
                counted.add(rows)
                progress(table.name, counted.digest.rows)
        digests[table.name] = counted.digest
    await target.finish(await source.position())
    return digests


async def compare(first: CopyEndpoint, second: CopyEndpoint) -> dict[str, tuple[TableDigest, TableDigest]]:
    """Return the digests of both indexes, by table."""
    return {table.name: (await digest_tables(first, table), await digest_tables(second, table)) for table in TABLES}
