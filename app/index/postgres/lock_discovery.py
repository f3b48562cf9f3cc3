"""Lock discovery: some transactions must read the index to know their locks.

They read it again under these locks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar

from sluice_s3.app.errors import DomainError, Overloaded
from sluice_s3.app.index.engine.declared import Write
from sluice_s3.app.index.postgres.advisory_locks import GLOBAL_LOCK
from sluice_s3.app.index.postgres.database import Connection, Database, Pool, query_with_retry
from sluice_s3.app.index.schema.tables import GROUP_BITS
from sluice_s3.app.index.sql.transaction import Row, Statement, Transaction

T = TypeVar("T")

MAX_ATTEMPTS = 20
LOCK_TIMEOUT_MS = 1000
POSITION = f"SELECT ((last_value << {GROUP_BITS}) | {(1 << GROUP_BITS) - 1})::bigint FROM commit_sequence"  # noqa: S608
BARRIER = f"BEGIN; SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}; SELECT pg_advisory_xact_lock({GLOBAL_LOCK}); COMMIT"

Read = Callable[[Transaction[list[Row]]], Awaitable[list[Row]]]


class Commit(Protocol):
    """Commits a function under the locks of a declaration, and additional locks."""

    def __call__(
        self,
        write: Write[..., Any],
        function: Callable[..., Transaction[Any]],
        arguments: Any,
        more_locks: Iterable[int],
    ) -> Awaitable[Any]:
        """Commit the function, and return its result."""
        ...


class _LocksChanged(DomainError):
    """The rows that determine the locks have changed."""


def _rows(statement: Statement, number: int) -> Transaction[list[Row]]:
    rows: list[Row] = yield statement, (number,)
    return rows


async def commit_discovered(read: Read, commit: Commit, write: Write[..., T], arguments: tuple[Any, ...]) -> T:
    """Commit a transaction whose locks are found in the index.

    See `app.index.engine.lock_keys.Discovery`.
    """
    assert write.discovers is not None
    statement, locks = write.discovers
    function = write.transaction()
    number = arguments[0]
    for _ in range(MAX_ATTEMPTS):
        discovered = locks(await read(_rows(statement, number)))

        def checked(*arguments: Any, locked: Iterable[int] = frozenset(discovered)) -> Transaction[T]:
            if not locks((yield statement, (number,))).issubset(locked):
                raise _LocksChanged()
            return (yield from function(*arguments))

        try:
            result: T = await commit(write, checked, arguments, discovered)
            return result
        except _LocksChanged:
            continue
    raise Overloaded(reason="what a change needs does not stay as it is")


async def sequence_barrier(database: Database, pool: Pool) -> int:
    """Return the last number drawn, once all groups with numbers up to it have ended."""

    async def read(connection: Connection) -> int:
        async with database.transaction(connection):
            last_drawn = await connection.fetchval(POSITION)
        await connection.execute(BARRIER)
        return int(last_drawn)

    return await query_with_retry(database, pool, read)
