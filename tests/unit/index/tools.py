"""What the tests of the index build with: rows, an index in memory without threads, and one that fails on demand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import apsw

from sluice_s3.app.index.multipart.rows import Extent, Part
from sluice_s3.app.index.objects.rows import NewVersion
from sluice_s3.app.index.postgres.index import PostgresIndex
from sluice_s3.app.index.sql.transaction import Transaction
from sluice_s3.app.index.sqlite.index import SqliteIndex
from sluice_s3.app.index.sqlite.migrate import table_definitions
from sluice_s3.app.index.sqlite.runner import OpenTransaction

T = TypeVar("T")

URL = "postgres"
"""A file with the URL of the index, where it is in Postgres."""

OWNER = "a" * 64
OTHER = "b" * 64


def new(body: str = "", **fields: Any) -> NewVersion:
    """A version to put."""
    made = NewVersion(
        size=4 if body else 0,
        etag="e1",
        headers='{"content-type":"text/plain"}',
        storage_class="STANDARD",
        checksum_algorithm="CRC64NVME",
        checksum_type="FULL_OBJECT",
        checksum="AAAAAAAAAAA=",
        body=body,
        parts=0,
        owner_id=OWNER,
    )
    return made._replace(**fields)


def part(number: int, *locators: str, size: int = 5, etag: str = "") -> Part:
    """A part of one extent of `size` bytes a locator."""
    extents = tuple(Extent(locator, 0, size) for locator in locators)
    return Part(number, size * len(locators), etag or f"etag{number}", 0, "CRC32", f"sum{number}", extents)


TABLES = ";".join(table_definitions())


class Memory:
    """The transactions on a database in memory, driven one by one."""

    def __init__(self) -> None:
        self.connection = apsw.Connection(":memory:")
        self.connection.execute(TABLES)
        self.connection.execute("INSERT INTO sequence VALUES (1, 0)")

    def run(self, transaction: Transaction[T]) -> T:
        """Commit it, or raise what it raises and leave nothing of it."""
        group = OpenTransaction(self.connection)
        group.begin(0)
        try:
            answer = group.run(transaction)
            group.write_sequence()
        except BaseException:
            group.rollback()
            raise
        group.commit()
        return answer

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.connection.execute(sql).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class Faults:
    """What the next statements of the writer's connections do instead of running."""

    def __init__(self) -> None:
        self.before: dict[str, list[Exception]] = {}
        """Raised instead of the statement that starts so, one a time."""
        self.after: dict[str, list[Exception]] = {}
        """Raised after the statement took effect."""
        self.connect: list[Exception] = []
        self.hook: Callable[[str], None] | None = None
        self.statements: list[str] = []

    def strike(self, faults: dict[str, list[Exception]], sql: str) -> None:
        for start, errors in faults.items():
            if sql.startswith(start) and errors:
                raise errors.pop(0)


class FaultyCursor:
    def __init__(self, cursor: apsw.Cursor, faults: Faults) -> None:
        self._cursor = cursor
        self._faults = faults

    def execute(self, sql: str, parameters: Any = ()) -> apsw.Cursor:
        self._faults.statements.append(sql)
        if self._faults.hook is not None:
            self._faults.hook(sql)
        self._faults.strike(self._faults.before, sql)
        answer = self._cursor.execute(sql, parameters)
        self._faults.strike(self._faults.after, sql)
        return answer

    def executemany(self, sql: str, parameters: Any) -> apsw.Cursor:
        return self._cursor.executemany(sql, parameters)


class FaultyConnection:
    def __init__(self, connection: apsw.Connection, faults: Faults) -> None:
        self._connection = connection
        self._faults = faults

    def cursor(self) -> FaultyCursor:
        return FaultyCursor(self._connection.cursor(), self._faults)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class FaultyIndex(SqliteIndex):
    """An index whose connections do what `faults` says; the reading one is opened before any are set."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.faults = Faults()

    def _connect(self) -> Any:
        if self.faults.connect:
            raise self.faults.connect.pop(0)
        return FaultyConnection(super()._connect(), self.faults)


def broken(message: str = "disk I/O error", code: int = apsw.SQLITE_IOERR) -> apsw.Error:
    """An error as SQLite raises it."""
    error = type(apsw.exception_for(code))(message)
    error.result, error.extendedresult = code & 0xFF, code
    return error


def open_at(directory: Path, kind: type[SqliteIndex] = SqliteIndex, **settings: Any) -> Any:
    """An index in a directory, relaxed unless told otherwise; to be started. In Postgres if the directory says so."""
    settings = {"durability": "relaxed", **settings}
    url = directory / URL
    if url.exists() and kind is SqliteIndex:
        return PostgresIndex(url.read_text(), directory / "run", **settings)
    return kind(directory / "sluice.db", directory / "run", **settings)


async def by_hand(index: Any, sql: str) -> None:
    """Change the tables behind the index's back."""
    connection = await index.database.connect() if isinstance(index, PostgresIndex) else index._connect()
    try:
        answer = connection.execute(sql)
        if isinstance(index, PostgresIndex):
            await answer
    finally:
        if isinstance(index, PostgresIndex):
            await connection.close()
        else:
            connection.close()
