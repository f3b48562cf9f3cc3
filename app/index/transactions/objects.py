"""Objects: put, copy, delete, and the reading of one version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from app.errors import ConditionalRequestConflict, DomainError, NoSuchBucket, SourceGone
from app.index import locks
from app.index.base import Deletion, Done
from app.index.rows import NULL_VERSION, Committed, Conditions, NewVersion, Version
from app.index.schema import CURRENT
from app.index.statements import (
    ADD_VERSION,
    BODY,
    REMOVE_VERSION,
    RENEW_HEADERS,
    REPLACE_VERSION,
    REPLACED,
    TO_DELETE,
    VERSION,
    VERSION_HEADERS,
)
from app.index.steps import DRAW, Transaction, now_ms
from app.index.transactions.conditions import check
from app.index.transactions.counting import discard, release, share
from app.index.transactions.versions import add_marker, add_version, delete_one, other_version
from app.index.tree_statements import MOVE_UNHASHED
from app.index.upkeep_statements import ADD_REMOVAL
from app.index.version_rows import Deleted

NOTHING = (None, None, None, 0, 0, "", 0, None)
"""What a delete finds where the bucket is gone."""


class Replaced(NamedTuple):
    """What a write finds under its key; `seq` and `etag` are None when there is no object."""

    seq: int | None
    etag: str | None
    size: int
    modified: int
    body: str
    bucket_id: int
    versioning: int


def version(bucket_id: int, key: str, version_id: str | None) -> Transaction[Version | None]:
    """The current object of a key, or the version of that id, which may be a delete marker."""
    rows = yield VERSION, (bucket_id, key)
    if rows and version_id in (None, rows[0][2]):
        return Version._make(rows[0])
    if version_id is None:
        return None
    return (yield from other_version(bucket_id, key, version_id))


def find_replaced(bucket_id: int, key: str, conditions: Conditions | None) -> Transaction[Replaced]:
    """What a write would replace, after its conditions were found to hold."""
    rows = yield REPLACED, (key, bucket_id)
    if not rows:
        raise NoSuchBucket()
    old = Replaced._make(rows[0])
    if conditions is not None:
        check(conditions, old.etag, old.size, old.modified)
    return old


def make_current(old: Replaced, key: str, new: NewVersion) -> Transaction[Committed]:
    """Write `new` in the place of `old`, whose body is released unless it is the new one's too.

    Where versions are kept, beside it: then what it holds was counted up, if another row holds it already.
    """
    if old.versioning:
        return (yield from add_version(old.bucket_id, old.versioning, key, new))
    seq = yield DRAW
    modified = now_ms()
    if old.seq is None:
        yield ADD_VERSION, (seq, old.bucket_id, key, NULL_VERSION, CURRENT, modified, *new)
    else:
        modified = max(modified, old.modified + 1)
        yield REPLACE_VERSION, (seq, modified, *new, old.seq)
        if old.body and old.body != new.body:
            yield from release(old.body)
    return Committed(seq, NULL_VERSION, modified)


def put_version(bucket_id: int, key: str, new: NewVersion, conditions: Conditions | None) -> Transaction[Committed]:
    """Make `new` the current version of a key."""
    old = yield from find_replaced(bucket_id, key, conditions)
    return (yield from make_current(old, key, new))


def copy_version(
    source_seq: int, bucket_id: int, key: str, new: NewVersion, conditions: Conditions | None
) -> Transaction[Committed]:
    """Make a version that holds the body of version `source_seq` too."""
    old = yield from find_replaced(bucket_id, key, conditions)
    rows = yield BODY, (source_seq,)
    if not rows:
        raise SourceGone()
    body = rows[0][0]
    if body and (old.versioning or body != old.body):
        yield from share(body)
    return (yield from make_current(old, key, new._replace(body=body)))


def set_headers(bucket_id: int, key: str, seq: int, headers: str, bypass: bool = False) -> Transaction[int]:
    """Give the version `seq` of a key other headers. It gets another number, so that they are written down beside the
    data as everything is that is decided later. Raises ObjectLocked when they end a retention; see `locks`."""
    rows = yield VERSION_HEADERS, (seq,)
    if not rows:
        raise ConditionalRequestConflict()
    locks.check_change(rows[0][0], headers, bypass=bypass)
    number = yield DRAW
    yield RENEW_HEADERS, (number, headers, seq, bucket_id)
    yield MOVE_UNHASHED, (number, seq)
    return int(number)


def delete_version(
    bucket_id: int, key: str, version_id: str | None, conditions: Conditions | None, bypass: bool = False
) -> Transaction[Committed | Deleted | None]:
    """Delete an object and release its body; where versions are kept, make a delete marker or remove the one named.

    Raises ObjectLocked for a version that is kept; with `bypass` only for one that nothing lets go.
    """
    rows = yield TO_DELETE, (key, bucket_id)
    seq, found, etag, size, modified, body, versioning, holders = rows[0] if rows else NOTHING
    if versioning and version_id is not None:
        return (yield from delete_one(bucket_id, key, version_id, conditions, bypass))
    if seq is None or version_id not in (None, found):
        seq = etag = None
    if conditions is not None:
        check(conditions, etag, size, modified)
    if versioning:
        return (yield from add_marker(bucket_id, versioning, key))
    if seq is None:
        return None
    yield REMOVE_VERSION, (seq,)
    number = yield DRAW
    # no older than what was written, by whatever clock that was: `rebuild` tells by it what is deleted
    yield ADD_REMOVAL, (number, "object", bucket_id, key, max(now_ms(), modified), "", NULL_VERSION)
    if body:
        yield from (discard(body) if holders is None else release(body))
    return Committed(seq, NULL_VERSION, modified)


def delete_versions(bucket_id: int, entries: Sequence[Deletion]) -> Transaction[list[Done]]:
    """Delete each entry; one whose condition fails has its error in its place."""
    answers: list[Done] = []
    for entry in entries:
        try:
            answers.append((yield from delete_version(bucket_id, *entry)))
        except DomainError as error:  # raised before a write of this entry
            answers.append(error)
    return answers
