"""What some transactions must look up before they know their locks. Once they hold them they look again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import select

from app.errors import DomainError, Overloaded
from app.index.building import columns, number
from app.index.postgres.link import Connection, asked
from app.index.postgres.locks import EVERYTHING, of_key, of_upload
from app.index.rows import PIECES, is_tree
from app.index.schema import GROUP_BITS, intents, versions
from app.index.steps import Row, Statement, Transaction
from app.index.transactions.multipart import pieces_number

if TYPE_CHECKING:
    from app.index.postgres.index import PostgresIndex

T = TypeVar("T")

TRIES = 20
LOCK_TIMEOUT_MS = 1000
SOURCE = Statement(select(*columns(versions, ("bucket_id", "key", "body"))).where(versions.c.seq == number("version")))
INTENT = Statement(select(*columns(intents, ("bucket_id", "key", "upload"))).where(intents.c.id == number("intent")))
POSITION = f"SELECT ((last_value << {GROUP_BITS}) | {(1 << GROUP_BITS) - 1})::bigint FROM commit_sequence"  # noqa: S608
BARRIER = f"BEGIN; SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}; SELECT pg_advisory_xact_lock({EVERYTHING}); COMMIT"


class _Moved(DomainError):
    """What was looked up is another by now."""


def _of_source(rows: list[Row]) -> set[int]:
    """The version's key, so that it keeps what it holds; and its pieces, which compaction moves."""
    found: set[int] = set()
    for bucket_id, key, body in rows:
        found.add(of_key(bucket_id, key))
        if is_tree(body) or body.startswith(PIECES):
            found.add(of_upload(pieces_number(body)))
    return found


def _of_intent(rows: list[Row]) -> set[int]:
    found: set[int] = set()
    for bucket_id, key, upload in rows:
        found.add(of_key(bucket_id, key))
        if upload:
            found.add(of_upload(upload))
    return found


def _rows(statement: Statement, at: int) -> Transaction[list[Row]]:
    rows: list[Row] = yield statement, (at,)
    return rows


async def _commit(
    index: PostgresIndex,
    statement: Statement,
    locks: Callable[[list[Row]], set[int]],
    function: Callable[..., Transaction[T]],
    at: int,
    *arguments: object,
) -> T:
    for _ in range(TRIES):
        also = locks(await index.look(_rows(statement, at)))

        def guarded(at: int, *arguments: Any, held: Iterable[int] = frozenset(also)) -> Transaction[T]:
            if not locks((yield statement, (at,))).issubset(held):
                raise _Moved()
            return (yield from function(at, *arguments))

        try:
            return await index.commit_under(function, guarded, also, at, *arguments)
        except _Moved:
            continue
    raise Overloaded(reason="what a change needs does not stay as it is")


async def of_source(index: PostgresIndex, function: Callable[..., Transaction[T]], seq: int, *arguments: object) -> T:
    """Commit what needs a version of which it is told the number alone."""
    return await _commit(index, SOURCE, _of_source, function, seq, *arguments)


async def of_intent(index: PostgresIndex, function: Callable[..., Transaction[T]], intent: int) -> T:
    """The same for an intent."""
    return await _commit(index, INTENT, _of_intent, function, intent)


async def barrier(index: PostgresIndex) -> int:
    """The last number that was drawn, once all that drew one up to it have ended."""

    async def ask(connection: Connection) -> int:
        async with index.link.transaction(connection):
            found = await connection.fetchval(POSITION)
        await connection.execute(BARRIER)
        return int(found)

    return await asked(index.link, index.reads, ask)
