"""Keys of the advisory locks that each transaction takes before it reads.

Postgres holds them until the transaction ends. A transaction takes the locks that its declaration names, and shares the
global lock with the others. One that names `global_lock` takes that lock exclusively, and so is as serial as on SQLite,
which always runs one at a time. postgres/README.md says why that is enough for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import xxhash
from sqlalchemy import select

from sluice_s3.app.index.lifecycle.rows import ExpireEntry
from sluice_s3.app.index.multipart.rows import PIECES, Upload
from sluice_s3.app.index.multipart.transactions import pieces_number
from sluice_s3.app.index.objects.rows import Rename, Version
from sluice_s3.app.index.plain_files.rows import ExternalFile, is_plain_file
from sluice_s3.app.index.reclaim.rows import QueuedDiscard
from sluice_s3.app.index.schema.tables import intents, versions
from sluice_s3.app.index.sql.builder import columns, number
from sluice_s3.app.index.sql.transaction import Row, Statement
from sluice_s3.app.index.versioning.rows import Deletion

_UPLOAD, _NAMED = 1 << 62, 1 << 61


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def lock_of_key(bucket_id: int, key: str) -> int:
    """Return the lock of a key."""
    return _signed(xxhash.xxh3_64_intdigest(key.encode(), bucket_id))


def lock_of_upload(number: int) -> int:
    """Return the lock of a multipart upload.

    It covers the upload's state, its parts, and the pieces that they became.
    """
    return _signed(xxhash.xxh3_64_intdigest(number.to_bytes(8, "little"), _UPLOAD))


def _of_name(name: str) -> int:
    return _signed(xxhash.xxh3_64_intdigest(name.encode(), _NAMED))


DISCARDS, JOURNALS, USES = _of_name("discards"), _of_name("journals"), _of_name("last uses")

# functions for declarations; each gets the arguments of the transaction


def global_lock(*_: object) -> None:
    """Return None, so that the transaction runs alone."""


def no_lock(*_: object) -> Iterable[int]:
    """Return no lock.

    The change is private or a single statement, or its locks are looked up (`Discovery`).
    """
    return ()


def discards_lock(*_: object) -> Iterable[int]:
    """Return the lock of the discard queue, each entry of which is counted dead once."""
    return (DISCARDS,)


def journals_lock(*_: object) -> Iterable[int]:
    """Return the lock of the watermarks and journals."""
    return (JOURNALS,)


def uses_lock(*_: object) -> Iterable[int]:
    """Return the lock of last uses: two workers may write the same rows in different orders."""
    return (USES,)


def key_lock(bucket_id: int, key: str, *_: object) -> Iterable[int]:
    """Return the lock of the key in the first argument."""
    return (lock_of_key(bucket_id, key),)


def second_key_lock(_: int, bucket_id: int, key: str, *__: object) -> Iterable[int]:
    """Return the lock of the key that follows a number."""
    return (lock_of_key(bucket_id, key),)


def entries_lock(bucket_id: int, entries: Sequence[Deletion]) -> Iterable[int]:
    """Return the locks of the keys of all entries."""
    return {lock_of_key(bucket_id, entry.key) for entry in entries}


def expired_lock(bucket_id: int, settings: str, entries: Sequence[ExpireEntry]) -> Iterable[int]:
    """Return the locks of the keys of all entries."""
    return {lock_of_key(bucket_id, entry.key) for entry in entries}


def adopted_lock(bucket_id: int, owner_id: str, since: int, files: Sequence[ExternalFile]) -> Iterable[int]:
    """Return the locks of the keys of all files."""
    return {lock_of_key(bucket_id, file.key) for file in files}


def vanished_lock(bucket_id: int, vanished: Sequence[tuple[str, int]]) -> Iterable[int]:
    """Return the locks of the keys of all files."""
    return {lock_of_key(bucket_id, key) for key, _ in vanished}


def rename_lock(bucket_id: int, rename: Rename) -> Iterable[int]:
    """Return the locks of both keys."""
    return lock_of_key(bucket_id, rename.source), lock_of_key(bucket_id, rename.target)


def append_lock(bucket_id: int, key: str, current: Version, *_: object) -> Iterable[int]:
    """Return the lock of the key, and of the pieces that were found there."""
    pieces = current.body.startswith(PIECES)
    return (lock_of_key(bucket_id, key), *([lock_of_upload(pieces_number(current.body))] if pieces else []))


def upload_lock(upload: Upload, *_: object) -> Iterable[int]:
    """Return the lock of the upload."""
    return (lock_of_upload(upload.id),)


def copied_part_lock(source_seq: int, upload: Upload, part: object) -> Iterable[int]:
    """Return the lock of the upload that the part goes to."""
    return upload_lock(upload)


def complete_lock(upload: Upload, *_: object) -> Iterable[int]:
    """Return the locks of the upload and of its key."""
    return lock_of_upload(upload.id), lock_of_key(upload.bucket_id, upload.key)


def own_complete_lock(incarnation: int, upload: Upload, *_: object) -> Iterable[int]:
    """Return the locks of the upload and of its key."""
    return complete_lock(upload)


def uploads_lock(bucket_id: int, settings: str, numbers: Sequence[int]) -> Iterable[int]:
    """Return the locks of all uploads."""
    return set(map(lock_of_upload, numbers))


def discard_lock(discard: QueuedDiscard, limit: int) -> Iterable[int]:
    """Return the lock of the upload whose pieces are discarded."""
    return (lock_of_upload(pieces_number(discard.body)),)


class Discovery(NamedTuple):
    """A lookup of a transaction's locks by its first argument.

    It is repeated under the locks.
    """

    statement: Statement
    locks: Callable[[list[Row]], set[int]]


def _locks_of_source(rows: list[Row]) -> set[int]:
    """Return the locks of the version's key and of its pieces.

    The key's lock lets the version keep its body. The second is for the pieces, which compaction moves.
    """
    locks: set[int] = set()
    for bucket_id, key, body in rows:
        locks.add(lock_of_key(bucket_id, key))
        if is_plain_file(body) or body.startswith(PIECES):
            locks.add(lock_of_upload(pieces_number(body)))
    return locks


def _locks_of_intent(rows: list[Row]) -> set[int]:
    locks: set[int] = set()
    for bucket_id, key, upload in rows:
        locks.add(lock_of_key(bucket_id, key))
        if upload:
            locks.add(lock_of_upload(upload))
    return locks


def _lookup(table: Any, names: tuple[str, ...], condition: Any) -> Statement:
    return Statement(select(*columns(table, names)).where(condition))


SOURCE = Discovery(
    _lookup(versions, ("bucket_id", "key", "body"), versions.c.seq == number("version")), _locks_of_source
)
"""Locks of a version of which only the number is known."""
INTENT = Discovery(_lookup(intents, ("bucket_id", "key", "upload"), intents.c.id == number("intent")), _locks_of_intent)
"""Locks of a write intent."""
