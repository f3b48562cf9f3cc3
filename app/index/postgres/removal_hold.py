"""The advisory lock by which a backup holds the removal of discarded bodies on all hosts.

See `app.index.engine.removal_hold`. The lock belongs to a transaction, so that it also works through a pooler. That
transaction is READ COMMITTED and keeps no snapshot, so that vacuum is not held up. Postgres releases the lock when the
backup dies.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from sluice_s3.app.errors import Overloaded, StoreUnavailable
from sluice_s3.app.index.engine.removal_hold import ANOTHER
from sluice_s3.app.index.postgres.database import Connection, Database

FIRST, SECOND = 0x510CE, 1
"""The key of the lock: two numbers, so that it is none of those of `app.index.engine.lock_keys`."""
TAKE = f"SELECT pg_try_advisory_xact_lock({FIRST}, {SECOND})"
IS_HELD = (
    "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 "  # noqa: S608
    f"AND classid = {FIRST} AND objid = {SECOND} "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
)
CHECK_SECONDS = 30.0


async def is_held(database: Database, connection: Connection) -> bool:
    """Return whether a backup holds removals."""
    async with database.transaction(connection):
        return bool(await connection.fetchval(IS_HELD, timeout=database.timeout))


@asynccontextmanager
async def hold(url: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Hold removals; yields a function that raises StoreUnavailable once the hold is lost.

    Raises Overloaded while another backup has it, and DomainError.
    """
    database = Database(url, pooler=True)
    connection = await database.connect()
    try:
        await connection.execute(f"{database.begin}; SET LOCAL idle_in_transaction_session_timeout = 0")
        if not await connection.fetchval(TAKE):
            raise Overloaded(reason=ANOTHER)

        async def check() -> None:
            try:
                await connection.execute("SELECT 1", timeout=CHECK_SECONDS)
            except Exception as error:
                raise StoreUnavailable(reason="the connection to Postgres was lost, and its hold with it") from error

        yield check
    finally:
        connection.terminate()
        await database.close()
