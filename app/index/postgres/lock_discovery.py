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

Look = Callable[[Transaction[list[Row]]], Awaitable[list[Row]]]


class Commit(Protocol):
    """Commits a function under the locks of a declaration, and additional locks."""

    def __call__(
        self, write: Write[..., Any], function: Callable[..., Transaction[Any]], arguments: Any, also: Iterable[int]
    ) -> Awaitable[Any]:
        """Commit the function, and return its result."""
        ...


class _Moved(DomainError):
    """The rows that determine the locks have changed."""


def _rows(statement: Statement, at: int) -> Transaction[list[Row]]:
    rows: list[Row] = yield statement, (at,)
    return rows


async def commit_discovered(look: Look, commit: Commit, write: Write[..., T], arguments: tuple[Any, ...]) -> T:
    """Commit a transaction whose locks are found in the index.

    See `app.index.engine.lock_keys.Discovery`.
    """
    assert write.discovers is not None
    statement, locks = write.discovers
    function = write.transaction()
    at = arguments[0]
    for _ in range(MAX_ATTEMPTS):
        also = locks(await look(_rows(statement, at)))

        def guarded(*arguments: Any, held: Iterable[int] = frozenset(also)) -> Transaction[T]:
            if not locks((yield statement, (at,))).issubset(held):
                raise _Moved()
            return (yield from function(*arguments))

        try:
            answer: T = await commit(write, guarded, arguments, also)
            return answer
        except _Moved:
            continue
    raise Overloaded(reason="what a change needs does not stay as it is")


async def sequence_barrier(link: Database, pool: Pool) -> int:
    """Return the last number drawn, once all groups with numbers up to it have ended."""

    async def ask(connection: Connection) -> int:
        async with link.transaction(connection):
            found = await connection.fetchval(POSITION)
        await connection.execute(BARRIER)
        return int(found)

    return await query_with_retry(link, pool, ask)
