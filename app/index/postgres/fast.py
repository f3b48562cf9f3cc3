"""Whole groups of PUTs or DELETEs in one call of a function in the server (migration 0005): one round trip a group.

They do what `app.index.transactions.objects` does. What they leave to it (bodies that more than one row holds, plain
files, buckets that keep versions) comes back as it went, to be run there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from app.errors import CommitUnknown, DomainError, NoSuchBucket, NoSuchKey, PreconditionFailed
from app.index.base import Deletion
from app.index.postgres.dialect import escaped
from app.index.queued import Job
from app.index.rows import NULL_VERSION, Committed, Conditions
from app.index.schema import GROUP_BITS
from app.index.transactions import objects

DEAD = "SL001"
"""SQLSTATE of a call of a writer that was declared dead."""
LARGEST = 1024
"""Entries of one call."""

_COMMON = "$1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bigint[]"
PUT = f"""SELECT made, modified, failed FROM sluice_put({_COMMON}, $6::bigint[], $7::text[], $8::bigint[], $9::text[],
$10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::bigint[], $17::text[], $18::text[],
$19::boolean[])"""  # noqa: S608 - constants
DELETE = f"""SELECT gone, version_id, modified, failed FROM sluice_delete({_COMMON}, $6::bigint[], $7::text[])"""  # noqa: S608

MADE = "SELECT modified FROM versions WHERE seq = $1::bigint"
GONE = "SELECT at FROM removals WHERE seq = $1::bigint"


FAST = frozenset({objects.put_version, objects.delete_version, objects.delete_versions})
"""What may go so. The first argument of each is a bucket's id."""
LEFT = frozenset({"slow", "versions"})
"""What they say of an entry with which they did nothing."""
REMEMBERED = 10_000

_versioned: OrderedDict[int, None] = OrderedDict()
"""Buckets that keep versions, as far as it was learned: they always will, and their ids are never used again."""


class Kind(IntEnum):
    """How an operation is run. A group is of one kind."""

    ANY = 0
    """As a transaction."""
    PUT = 1
    DELETE = 2


def kind_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Kind:
    """The way that an operation can go."""
    if function not in FAST or arguments[0] in _versioned:
        return Kind.ANY
    if function is objects.put_version:
        conditions: Conditions | None = arguments[3]
        plain = conditions is None or (conditions.if_match_size is None and conditions.if_match_modified is None)
        return Kind.PUT if plain else Kind.ANY
    if function is objects.delete_version:
        return Kind.DELETE if arguments[2] is None and arguments[3] is None else Kind.ANY
    entries: Sequence[Deletion] = arguments[1]
    plain = all(entry.version_id is None and entry.conditions == Conditions() for entry in entries)
    return Kind.DELETE if plain and len({entry.key for entry in entries}) == len(entries) else Kind.ANY


class Call(NamedTuple):
    """The call for a group, without what all of them begin with."""

    sql: str
    arrays: tuple[list[Any], ...]
    must_know: bool
    """Its answers can be told only by its rows: they must be here before it is committed."""


def call(kind: Kind, jobs: Sequence[Job]) -> Call:
    """What to ask the server."""
    return _put(jobs) if kind is Kind.PUT else _delete(jobs)


def _put(jobs: Sequence[Job]) -> Call:
    rows = []
    must_know = False
    for job in jobs:
        bucket_id, key, new, conditions = job.arguments
        match, none_match = None, False
        if conditions is not None:
            match, none_match, must_know = conditions.if_match, bool(conditions.if_none_match), True
        rows.append((bucket_id, escaped(key), *map(_plain, new), match, none_match))
    return Call(PUT, tuple(map(list, zip(*rows, strict=True))), must_know)


def _plain(value: Any) -> Any:
    return escaped(value) if type(value) is str else value


def _delete(jobs: Sequence[Job]) -> Call:
    buckets: list[int] = []
    keys: list[str] = []
    for job in jobs:
        for key in _keys(job):
            buckets.append(job.arguments[0])
            keys.append(escaped(key))
    return Call(DELETE, (buckets, keys), False)


def _keys(job: Job) -> list[str]:
    if job.function is objects.delete_version:
        return [job.arguments[1]]
    return [entry.key for entry in job.arguments[1]]


def answer(kind: Kind, jobs: Sequence[Job], rows: Sequence[Any]) -> list[Job]:
    """Give each its answer; those that were left alone are returned."""
    left: list[Job] = []
    if kind is Kind.PUT:
        for job, (seq, modified, failed) in zip(jobs, rows, strict=True):
            if failed in LEFT:
                left.append(job)
                _learn(job, failed)
            elif failed:
                job.error = _refusal(failed)
            else:
                job.result = Committed(seq, NULL_VERSION, modified)
        return left
    given = iter(rows)
    for job in jobs:
        mine = [next(given) for _ in _keys(job)]
        # of DeleteObjects the rest is done, and is not there any more when all is run again
        done = [None if failed else Committed(seq, version, modified) for seq, version, modified, failed in mine]
        reasons = LEFT.intersection(failed for *_, failed in mine)
        if reasons:
            left.append(job)
            _learn(job, *reasons)
        job.result = done[0] if job.function is objects.delete_version else done
    return left


def _learn(job: Job, *reasons: str) -> None:
    if "versions" in reasons:
        _versioned[job.arguments[0]] = None
        if len(_versioned) > REMEMBERED:
            _versioned.popitem(last=False)


def _refusal(failed: str) -> DomainError:
    if failed == "bucket":
        return NoSuchBucket()
    return NoSuchKey() if failed == "key" else PreconditionFailed(condition=failed)


async def answer_later(kind: Kind, jobs: Sequence[Job], number: int, connection: Any) -> None:
    """Give each its answer after a commit of which only the number is known; see `Call.must_know`.

    What is there shows by the number that it was given. What is not was left alone, is replaced by now, or never was:
    whoever asked for it is told that the outcome is not known.
    """
    place = 0
    for job in jobs:
        given = [1] if kind is Kind.PUT else _keys(job)
        found: list[Any] = []
        for _ in given:
            seq = (number << GROUP_BITS) + 2 * place
            modified = await connection.fetchval(MADE if kind is Kind.PUT else GONE, seq)
            found.append(CommitUnknown() if modified is None else Committed(seq, NULL_VERSION, modified))
            place += 1
        if job.function is objects.delete_versions:
            job.result = found
        elif isinstance(found[0], CommitUnknown):
            job.error = found[0]
        else:
            job.result = found[0]
