"""Runs a group of PUTs or DELETEs by one call of a server function.

Migration 0005 creates the functions. A call is one round trip per group. The functions do the same as
`app.index.objects.transactions`. They leave some entries untouched (bodies that several rows hold, plain files, buckets
that keep versions), which then run as transactions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

from sluice_s3.app.errors import CommitUnknown, DomainError, NoSuchBucket, NoSuchKey, PreconditionFailed
from sluice_s3.app.index.engine.commit_queue import Job
from sluice_s3.app.index.engine.procedures import Procedure
from sluice_s3.app.index.objects.rows import NULL_VERSION, CommitResult
from sluice_s3.app.index.postgres.dialect import escape
from sluice_s3.app.index.schema.tables import GROUP_BITS

DEAD = "SL001"
"""SQLSTATE of a call by a writer that was declared dead."""
LARGEST = 1024
"""Maximum number of entries of one call."""

_COMMON = "$1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bigint[]"
PUT = f"""SELECT made, modified, failed FROM sluice_put({_COMMON}, $6::bigint[], $7::text[], $8::bigint[], $9::text[],
$10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::bigint[], $17::text[], $18::text[],
$19::boolean[])"""  # noqa: S608 - constants
DELETE = f"""SELECT gone, version_id, modified, failed FROM sluice_delete({_COMMON}, $6::bigint[], $7::text[])"""  # noqa: S608

VERSION_TIME = "SELECT modified FROM versions WHERE seq = $1::bigint"
TOMBSTONE_TIME = "SELECT at FROM removals WHERE seq = $1::bigint"


UNTOUCHED = frozenset({"slow", "versions"})
"""Failure values of entries that the functions left untouched."""
MAX_CACHED = 10_000

_versioned: OrderedDict[int, None] = OrderedDict()
"""Buckets known to keep versions. A bucket never stops doing so, and its id is never reused."""


def procedure_of(job: Job) -> Procedure:
    """Return the procedure that can run a job, or `Procedure.NONE`.

    The first argument of such a job is the id of a bucket.
    """
    procedure = job.write.procedure
    if procedure is None or job.function is not job.write.function or job.arguments[0] in _versioned:
        return Procedure.NONE
    return procedure(*job.arguments)


class Call(NamedTuple):
    """The call for a group, without the parameters that all calls share."""

    sql: str
    arrays: tuple[list[Any], ...]
    must_know: bool
    """Only the returned rows tell the results, so they must arrive before the commit."""


def build_call(kind: Procedure, jobs: Sequence[Job]) -> Call:
    """Return the call that runs the jobs."""
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
    """Return the keys of a DELETE: of one object, or of the entries of many."""
    key_or_entries = job.arguments[1]
    return [key_or_entries] if isinstance(key_or_entries, str) else [entry.key for entry in key_or_entries]


def apply_results(kind: Procedure, jobs: Sequence[Job], rows: Sequence[Any]) -> list[Job]:
    """Set the result of each job.

    Returns the jobs that were left untouched.
    """
    untouched: list[Job] = []
    if kind is Procedure.PUT:
        for job, (seq, modified, failed) in zip(jobs, rows, strict=True):
            if failed in UNTOUCHED:
                untouched.append(job)
                _remember_versioned(job, failed)
            elif failed:
                job.error = _error_of(failed)
            else:
                job.result = CommitResult(seq, NULL_VERSION, modified)
        return untouched
    results = iter(rows)
    for job in jobs:
        own_rows = [next(results) for _ in _keys(job)]
        # the other keys of DeleteObjects are deleted, and are no longer there when the whole job runs again
        outcomes = [
            None if failed else CommitResult(seq, version, modified) for seq, version, modified, failed in own_rows
        ]
        reasons = UNTOUCHED.intersection(failed for *_, failed in own_rows)
        if reasons:
            untouched.append(job)
            _remember_versioned(job, *reasons)
        job.result = outcomes[0] if isinstance(job.arguments[1], str) else outcomes
    return untouched


def _remember_versioned(job: Job, *reasons: str) -> None:
    if "versions" in reasons:
        _versioned[job.arguments[0]] = None
        if len(_versioned) > MAX_CACHED:
            _versioned.popitem(last=False)


def _error_of(failed: str) -> DomainError:
    if failed == "bucket":
        return NoSuchBucket()
    return NoSuchKey() if failed == "key" else PreconditionFailed(condition=failed)


async def recover_results(kind: Procedure, jobs: Sequence[Job], number: int, connection: Any) -> None:
    """Set the results of jobs after a commit of which only the number is known.

    See `Call.must_know`. A row with the number that a job was given proves that the job took effect. Without such a
    row, the job was left untouched, its row was replaced since, or it never ran: it ends with CommitUnknown.
    """
    position = 0
    for job in jobs:
        keys = [1] if kind is Procedure.PUT else _keys(job)
        outcomes: list[Any] = []
        for _ in keys:
            seq = (number << GROUP_BITS) + 2 * position
            modified = await connection.fetchval(VERSION_TIME if kind is Procedure.PUT else TOMBSTONE_TIME, seq)
            outcomes.append(CommitUnknown() if modified is None else CommitResult(seq, NULL_VERSION, modified))
            position += 1
        if not isinstance(job.arguments[1], str):
            job.result = outcomes
        elif isinstance(outcomes[0], CommitUnknown):
            job.error = outcomes[0]
        else:
            job.result = outcomes[0]
