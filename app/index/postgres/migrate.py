"""Creates or upgrades the tables in Postgres, and checks the server's suitability."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.postgres.advisory_locks import GLOBAL_LOCK
from sluice_s3.app.index.postgres.database import Connection, Database
from sluice_s3.app.index.postgres.errors import is_retryable
from sluice_s3.app.index.schema.tables import REVISION, UNKNOWN_REVISION

logger = logging.getLogger("sluice.index")

OLDEST = 14
MIGRATING = GLOBAL_LOCK + 1
"""Lock of the migration. Gateways that start together wait for the first one."""
LOCK_MS = 300
"""Milliseconds for which it waits for a table that a gateway uses.

Less than `deadlock_timeout`: before Postgres ends a transaction of a gateway, the migration gives way.
"""
UPGRADE_SECONDS = 60.0
PAUSE_SECONDS = 0.2


async def revision(connection: Connection) -> str | None:
    """Return the revision of the index, or None when it has no tables yet."""
    if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
        return None
    found = await connection.fetchval("SELECT version_num FROM alembic_version")
    return None if found is None else str(found)


async def require_server(connection: Connection, *, durability: str) -> None:
    """Raise StoreUnavailable with the reason when this server cannot hold the index."""
    version = int(await connection.fetchval("SHOW server_version_num"))
    if version < OLDEST * 10_000:
        raise StoreUnavailable(reason=f"the index needs PostgreSQL {OLDEST} or later, and this is {version // 10_000}")
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreUnavailable(reason=f"the index needs a database of the encoding UTF8, and this is {encoding}")
    if await connection.fetchval("SELECT pg_is_in_recovery()"):
        raise StoreUnavailable(reason="the index needs the primary server, and this one is a standby")
    if durability == "full":
        for name in ("fsync", "full_page_writes"):
            if await connection.fetchval(f"SHOW {name}") != "on":
                raise StoreUnavailable(
                    reason=f"durability is full, and the Postgres server runs with {name} off: turn it on, or choose "
                    "SLUICE_DURABILITY=relaxed"
                )


async def check_revision(connection: Connection) -> None:
    """Raise StoreUnavailable unless the index has the revision that this code needs."""
    found = await revision(connection)
    if found is None:
        raise StoreUnavailable(reason="there is no index in this database: `sluice migrate` makes it")
    if found != REVISION:
        raise StoreUnavailable(reason=f"the index is of revision {found} and this version needs {REVISION}")


async def upgrade(database: Database) -> None:
    """Create or upgrade the tables.

    Of several concurrent callers, one does it. Raises StoreUnavailable through a pooler.
    """
    if database.pooler:
        raise StoreUnavailable(reason="the tables are missing or old: `sluice migrate` with a URL of the server itself")
    connection = await database.connect()
    try:
        current = await revision(connection)
    finally:
        await connection.close()
    if current is not None and current != REVISION:
        logger.warning(
            "index: upgrading it from revision %s to %s; earlier versions of Sluice cannot use it then",
            current,
            REVISION,
        )
    await _run_alembic(database.connect)


async def _run_alembic(connect: Callable[[], Awaitable[Connection]]) -> None:
    """Run the migrations in one transaction, again when the gateways that serve need its tables first.

    Raises StoreUnavailable when they do for `UPGRADE_SECONDS`.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError
    from sqlalchemy import text
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    import sluice_s3.migrations

    config = Config()
    config.set_main_option("script_location", str(Path(sluice_s3.migrations.__file__).parent).replace("%", "%%"))
    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)

    def run(connection: Any) -> None:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATING})"))
        connection.execute(text(f"SET LOCAL lock_timeout = {LOCK_MS}"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")

    until = time.monotonic() + UPGRADE_SECONDS
    try:
        while True:
            try:
                async with engine.begin() as connection:
                    await connection.run_sync(run)
                return
            except CommandError as error:
                raise StoreUnavailable(reason=UNKNOWN_REVISION.format(error)) from error
            except DBAPIError as error:
                if not is_retryable(error.orig or error):
                    raise
                if time.monotonic() > until:
                    raise StoreUnavailable(reason="other programs keep the tables locked: upgrade again") from error
            await asyncio.sleep(PAUSE_SECONDS)
    finally:
        await engine.dispose()
