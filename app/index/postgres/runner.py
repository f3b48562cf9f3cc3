"""Runs transactions on a connection to Postgres.

See `app.index.sql.transaction`.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.postgres.database import Connection
from sluice_s3.app.index.postgres.dialect import escape_all, prepare
from sluice_s3.app.index.schema.tables import GROUP_BITS
from sluice_s3.app.index.sql.dialect import Query
from sluice_s3.app.index.sql.transaction import Draw, Statement, Transaction

T = TypeVar("T")

NUMBERS = 1 << GROUP_BITS
"""Numbers that one group may draw before it needs another value of the sequence."""
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
NEXT = "SELECT nextval('commit_sequence')"


async def rows_of(
    connection: Connection, statement: Statement | Query, parameters: Any, timeout: float | None
) -> list[Any]:
    """Return the rows of one statement."""
    sql, plain = prepare(statement)
    rows: list[Any] = await connection.fetch(sql, *escape_all(parameters), timeout=timeout)
    return plain(rows) if plain and rows else rows


class Reading(Generic[T]):
    """A transaction that only reads.

    When its connection is lost, it continues on another one where it stopped.
    """

    def __init__(self, transaction: Transaction[T], timeout: float | None = None) -> None:
        self._transaction = transaction
        self._timeout = timeout
        self._step: Any = None
        """The statement that waits for its rows."""
        self._answered = False

    async def run(self, connection: Connection) -> T:
        """Run the transaction, each statement on its own."""
        try:
            if self._step is None:
                self._step = self._transaction.send(None)
            while True:
                statement, parameters = self._step
                rows = await rows_of(connection, statement, parameters, self._timeout)
                self._answered = True
                self._step = self._transaction.send(rows)
        except StopIteration as stop:
            answer: T = stop.value
            return answer

    async def together(self, connection: Connection) -> T:
        """Run the transaction in one snapshot of the index.

        Raises StoreUnavailable when a part was already answered outside of the snapshot.
        """
        if self._answered:
            raise StoreUnavailable(reason="the index went away")
        await connection.execute(SNAPSHOT, timeout=self._timeout)
        try:
            return await self.run(connection)
        finally:
            await connection.execute("ROLLBACK", timeout=self._timeout)


async def read(connection: Connection, transaction: Transaction[T], timeout: float | None = None) -> T:
    """Run a transaction that only reads, each statement on its own."""
    return await Reading(transaction, timeout).run(connection)


async def snapshot(connection: Connection, transaction: Transaction[T], timeout: float | None = None) -> T:
    """Run a transaction that only reads, in one snapshot of the index."""
    return await Reading(transaction, timeout).together(connection)


class OpenTransaction:
    """A database transaction that has begun.

    `first` is the number that it drew from the commit sequence.
    """

    def __init__(self, connection: Connection, first: int) -> None:
        self._connection = connection
        self._begin(first)
        self.dirty = False
        """Whether the current or last operation has written anything."""

    def _begin(self, first: int) -> None:
        self._next = first << GROUP_BITS
        self._end = self._next + NUMBERS

    async def run(self, transaction: Transaction[T]) -> T:
        """Run one operation inside the group."""
        connection = self._connection
        self.dirty = False
        answer: object = None
        try:
            while True:
                step = transaction.send(answer)
                if type(step) is Draw:
                    answer = await self._draw(step.amount)
                    continue
                statement, parameters = step
                if statement.writes:
                    self.dirty = True
                if type(parameters) is list:
                    answer = None
                    if parameters:
                        sql = prepare(statement).sql
                        await connection.executemany(sql, [escape_all(row) for row in parameters])
                else:
                    answer = await rows_of(connection, statement, parameters, None)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def _draw(self, amount: int) -> int:
        if self._next + amount > self._end:
            self._begin(await self._connection.fetchval(NEXT))
        first = self._next
        self._next += amount
        if self._next > self._end:
            raise ValueError(f"more than {NUMBERS} numbers at once")
        return first
