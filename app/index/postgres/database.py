"""Connections to Postgres, and pools that fail at once while it is unavailable.

After one failed connection attempt or one answer that times out, Postgres counts as unavailable. Requests are then
refused at once, and one task retries until Postgres answers. Broken connections are dropped where they are noticed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg

from sluice_s3.app.eager_task import enter_task
from sluice_s3.app.errors import DomainError, Overloaded, StoreUnavailable
from sluice_s3.app.index.postgres.errors import is_lost, state_of, to_domain_error

logger = logging.getLogger("sluice.index")

Connection = Any
"""asyncpg.Connection, whose type stubs lack members that the code uses."""

T = TypeVar("T")

CONNECT_SECONDS = 3.0
MAX_ATTEMPTS = 3
TOO_MANY = "53300"
"""SQLSTATE of a server that has no connection left. The server is available."""
RETRY_SECONDS = 0.2
IDLE_IN_TRANSACTION_MS = 5000
"""Milliseconds after which Postgres ends an idle transaction of a stopped gateway and releases its locks."""


class Database:
    """The address and availability of Postgres.

    The URL appears in no message and in no `repr`.
    """

    def __init__(self, url: str, *, durability: str = "full", pooler: bool = False, timeout: float = 10.0) -> None:
        self._url = "postgresql" + url[url.index("://") :]
        self.pooler = pooler
        self.timeout = timeout
        """Seconds to wait for the answer to a read."""
        durable = "on" if durability == "full" else "off"
        local = {"idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_MS), "synchronous_commit": durable}
        # a pooler shares its connections between clients, and refuses most session settings
        self._settings = {} if pooler else {**local, "jit": "off", "client_connection_check_interval": "1000"}
        # plans are cached: a plan that was made for a small table must not scan it when it has grown
        self._hot = {} if pooler else {"enable_seqscan": "off"}
        self.begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
        if pooler:
            self.begin += "".join(f"; SET LOCAL {name} = '{value}'" for name, value in local.items())
        self.is_down = False
        self._reason = "the index is away"
        self._task: asyncio.Task[None] | None = None
        self._pools: list[Pool] = []

    def __repr__(self) -> str:
        parts = urlsplit(self._url)
        return f"Link({parts.hostname}:{parts.port or 5432}{parts.path})"

    async def connect(self, *, hot: bool = False) -> Connection:
        """Open a new connection.

        `hot` is for statements that find their rows by a key. Raises DomainError.
        """
        if self.is_down:
            raise self.unavailable()
        try:
            return await self._connect(hot)
        except Exception as error:
            if state_of(error) != TOO_MANY:
                self.mark_down()
            raise to_domain_error(error) from None

    async def _connect(self, hot: bool = False) -> Connection:
        await enter_task()
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncpg.connect(
                self._url,
                server_settings={"application_name": "sluice", **self._settings, **(self._hot if hot else {})},
                statement_cache_size=0 if self.pooler else 512,
                max_cached_statement_lifetime=0,
            )

    @asynccontextmanager
    async def transaction(self, connection: Connection) -> AsyncIterator[None]:
        """Wrap a statement in a transaction, but only through a pooler.

        There, a statement is prepared and executed in two steps.
        """
        if not self.pooler:
            yield
            return
        await connection.execute(self.begin)
        yield
        await connection.execute("COMMIT")

    def unavailable(self) -> StoreUnavailable:
        """Return the error for requests while Postgres is unavailable."""
        return StoreUnavailable(reason=self._reason)

    def refuse(self, reason: str) -> None:
        """Refuse all requests permanently."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        self.is_down, self._reason = True, reason
        logger.error("index: %s", reason)
        for pool in self._pools:
            pool.refuse_waiting()

    def mark_down(self) -> None:
        """Record that Postgres does not answer.

        All requests are refused until it does.
        """
        if self._task is not None or self.is_down:
            return
        self._task = asyncio.get_running_loop().create_task(self._try())
        self.is_down = True  # not before: without memory nothing would try again
        logger.error("index: Postgres does not answer")
        for pool in self._pools:
            pool.refuse_waiting()

    async def _try(self) -> None:
        while True:
            try:
                await asyncio.sleep(RETRY_SECONDS)
                connection = await self._connect()
                try:
                    await connection.execute("SELECT 1", timeout=CONNECT_SECONDS)
                finally:
                    connection.terminate()
            except Exception as error:
                logger.debug("index: still away: %s", type(error).__name__)
                await asyncio.sleep(0)
                continue
            break
        self.is_down, self._task = False, None
        logger.warning("index: Postgres answers again")

    def pool(self, size: int, *, hot: bool = True) -> Pool:
        """Return a new pool of at most `size` connections."""
        new_pool = Pool(self, size, hot)
        self._pools.append(new_pool)
        return new_pool

    async def close(self) -> None:
        """Close all idle connections and stop retrying."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self.is_down = True
        for pool in self._pools:
            pool.refuse_waiting()
            await pool.close()


class Pool:
    """Connections of one worker for one purpose.

    The most recently used connection is handed out first.
    """

    def __init__(self, database: Database, size: int, hot: bool) -> None:
        self._database = database
        self._hot = hot
        self._size = size
        self._open = 0
        self._idle: list[Connection] = []
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()

    async def acquire(self, *, first: bool = False) -> Connection:
        """Return a connection, which the caller gives back by `release`.

        With `first`, it is served before all other waiters. Raises Overloaded, StoreUnavailable.
        """
        while True:
            while self._idle:
                connection = self._idle.pop()
                if not connection.is_closed():
                    return connection
                self._open -= 1
            if self._database.is_down:
                raise self._database.unavailable()
            if self._open < self._size:
                break
            connection = await self._wait(first)
            if connection is not None and not connection.is_closed():
                return connection
            self._open -= connection is not None
        self._open += 1
        try:
            return await self._database.connect(hot=self._hot)
        except BaseException:
            self._open -= 1
            self._hand_over(None)
            raise

    async def _wait(self, first: bool) -> Connection | None:
        """Wait for a released connection.

        Returns None when a new connection may be opened.
        """
        future: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if first else self._waiting.append)(future)
        try:
            await enter_task()
            async with asyncio.timeout(self._database.timeout):
                return await future
        except (TimeoutError, asyncio.CancelledError) as error:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._hand_over(future.result())  # it was this waiter's turn: pass it on
            if isinstance(error, TimeoutError):
                raise Overloaded(reason="no connection to the index is free") from None
            raise

    def release(self, connection: Connection) -> None:
        """Give back a connection that is in no transaction."""
        if connection.is_closed():
            self._open -= 1
            self._hand_over(None)
        else:
            self._hand_over(connection)

    def drop(self, connection: Connection) -> None:
        """Give back a connection that broke or whose state is unknown."""
        connection.terminate()
        self._open -= 1
        self._hand_over(None)

    def _hand_over(self, connection: Connection | None) -> None:
        """Give a connection to the longest waiter, so that later ones cannot overtake it."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(connection)
                return
        if connection is not None:
            self._idle.append(connection)

    def refuse_waiting(self) -> None:
        """Fail all waiters, because Postgres is unavailable."""
        waiting, self._waiting = self._waiting, deque()
        for future in waiting:
            if not future.done():
                future.set_exception(self._database.unavailable())

    async def close(self) -> None:
        """Close idle connections."""
        idle, self._idle = self._idle, []
        self._open -= len(idle)
        for connection in idle:
            try:
                await connection.close(timeout=1)
            except Exception:
                connection.terminate()


async def query_with_retry(
    database: Database, pool: Pool, ask: Callable[[Connection], Awaitable[T]], *, first: bool = False
) -> T:
    """Run a read, and retry it on another connection when an old one had broken.

    With `first`, it is served before all others that wait for a connection. Raises DomainError.
    """
    for attempts_left in reversed(range(MAX_ATTEMPTS)):
        connection = await pool.acquire(first=first)
        try:
            answer = await ask(connection)
        except DomainError:
            pool.release(connection)
            raise
        except Exception as error:
            pool.drop(connection)
            if isinstance(error, TimeoutError):
                database.mark_down()
            elif attempts_left and is_lost(error):
                continue
            raise to_domain_error(error) from None
        except BaseException:
            pool.drop(connection)
            raise
        pool.release(connection)
        return answer
    raise AssertionError("unreachable")
