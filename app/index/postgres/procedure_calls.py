"""Whole groups of PUTs or DELETEs in one call of a function in the server (migration 0005): one round trip a group.

They do what `app.index.transactions.objects` does. What they leave to it (bodies that more than one row holds, plain
files, buckets that keep versions) comes back as it went, to be run there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

from sluice_s3.app.errors import CommitUnknown, DomainError, NoSuchBucket, NoSuchKey, PreconditionFailed
from sluice_s3.app.index.engine.commit_queue import Job
from sluice_s3.app.index.engine.procedures import Procedure
from sluice_s3.app.index.postgres.dialect import escape
from sluice_s3.app.index.rows import NULL_VERSION, CommitResult
from sluice_s3.app.index.schema.tables import GROUP_BITS

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


LEFT = frozenset({"slow", "versions"})
"""What they say of an entry with which they did nothing."""
MAX_CACHED = 10_000

_versioned: OrderedDict[int, None] = OrderedDict()
"""Buckets that keep versions, as far as it was learned: they always will, and their ids are never used again."""


def procedure_of(job: Job) -> Procedure:
    """Return the way that an operation can go. The first argument of what may go so is a bucket's id."""
    procedure = job.write.procedure
    if procedure is None or job.function is not job.write.function or job.arguments[0] in _versioned:
        return Procedure.NONE
    return procedure(*job.arguments)


class Call(NamedTuple):
    """The call for a group, without what all of them begin with."""

    sql: str
    arrays: tuple[list[Any], ...]
    must_know: bool
    """Its answers can be told only by its rows: they must be here before it is committed."""


def build_call(kind: Procedure, jobs: Sequence[Job]) -> Call:
    """What to ask the server."""
    return _put(jobs) if kind is Procedure.PUT else _delete(jobs)


def _put(jobs: Sequence[Job]) -> Call:
    rows = []
    must_know = False
    for job in jobs:
        bucket_id, key, new, conditions = job.arguments
        match, none_match = None, False
        if conditions is not None:
            match, none_match, must_know = conditions.if_match, bool(conditions.if_none_match), True
        rows.append((bucket_id, escape(key), *map(_plain, new), match, none_match))
    return Call(PUT, tuple(map(list, zip(*rows, strict=True))), must_know)


def _plain(value: Any) -> Any:
    return escape(value) if type(value) is str else value


def _delete(jobs: Sequence[Job]) -> Call:
    buckets: list[int] = []
    keys: list[str] = []
    for job in jobs:
        for key in _keys(job):
            buckets.append(job.arguments[0])
            keys.append(escape(key))
    return Call(DELETE, (buckets, keys), False)


def _keys(job: Job) -> list[str]:
    """The keys of a DELETE: of one object, or of the entries of many."""
    given = job.arguments[1]
    return [given] if isinstance(given, str) else [entry.key for entry in given]


def apply_results(kind: Procedure, jobs: Sequence[Job], rows: Sequence[Any]) -> list[Job]:
    """Give each its answer; those that were left alone are returned."""
    left: list[Job] = []
    if kind is Procedure.PUT:
        for job, (seq, modified, failed) in zip(jobs, rows, strict=True):
            if failed in LEFT:
                left.append(job)
                _learn(job, failed)
            elif failed:
                job.error = _refusal(failed)
            else:
                job.result = CommitResult(seq, NULL_VERSION, modified)
        return left
    given = iter(rows)
    for job in jobs:
        mine = [next(given) for _ in _keys(job)]
        # of DeleteObjects the rest is done, and is not there any more when all is run again
        done = [None if failed else CommitResult(seq, version, modified) for seq, version, modified, failed in mine]
        reasons = LEFT.intersection(failed for *_, failed in mine)
        if reasons:
            left.append(job)
            _learn(job, *reasons)
        job.result = done[0] if isinstance(job.arguments[1], str) else done
    return left


def _learn(job: Job, *reasons: str) -> None:
    if "versions" in reasons:
        _versioned[job.arguments[0]] = None
        if len(_versioned) > MAX_CACHED:
            _versioned.popitem(last=False)


def _refusal(failed: str) -> DomainError:
    if failed == "bucket":
        return NoSuchBucket()
    return NoSuchKey() if failed == "key" else PreconditionFailed(condition=failed)


async def recover_results(kind: Procedure, jobs: Sequence[Job], number: int, connection: Any) -> None:
    """Give each its answer after a commit of which only the number is known; see `Call.must_know`.

    What is there shows by the number that it was given. What is not was left alone, is replaced by now, or never was:
    whoever asked for it is told that the outcome is not known.
    """
    place = 0
    for job in jobs:
        given = [1] if kind is Procedure.PUT else _keys(job)
        found: list[Any] = []
        for _ in given:
            seq = (number << GROUP_BITS) + 2 * place
            modified = await connection.fetchval(MADE if kind is Procedure.PUT else GONE, seq)
            found.append(CommitUnknown() if modified is None else CommitResult(seq, NULL_VERSION, modified))
            place += 1
        if not isinstance(job.arguments[1], str):
            job.result = found
        elif isinstance(found[0], CommitUnknown):
            job.error = found[0]
        else:
            job.result = found[0]
