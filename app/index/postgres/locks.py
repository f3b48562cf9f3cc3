"""What each transaction must hold before it reads: advisory locks of Postgres, held until it ends.

A transaction that stands in `SHARED` takes the lock of its keys, uploads and so on, and the lock of everything in
common with the others. One that does not stand here takes that lock alone, and so is as serial as on SQLite. README.md
here says why that is enough for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import xxhash

from app.index.rows import PIECES
from app.index.transactions import (
    decisions,
    deliveries,
    discards,
    expiry,
    identities,
    intents,
    multipart,
    objects,
    packs,
    restores,
    rewriting,
    writers,
)

EVERYTHING = 0x5_10_1CE
"""The lock that all take in common, and some alone."""
MOST = 128
"""Locks that one group takes at most: those of all groups must find room in the server's table
(`max_locks_per_transaction` times `max_connections`, 6400 unless changed)."""

_UPLOAD, _NAMED = 1 << 62, 1 << 61

Locks = tuple[int, ...]


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def of_key(bucket_id: int, key: str) -> int:
    """The lock of a key."""
    return _signed(xxhash.xxh3_64_intdigest(key.encode(), bucket_id))


def of_upload(number: int) -> int:
    """The lock of a multipart upload: its state, its parts, and the pieces that they became."""
    return _signed(xxhash.xxh3_64_intdigest(number.to_bytes(8, "little"), _UPLOAD))


def _of_name(name: str) -> int:
    return _signed(xxhash.xxh3_64_intdigest(name.encode(), _NAMED))


DISCARDS, JOURNALS = _of_name("discards"), _of_name("journals")


def _key(bucket_id: int, key: str, *_: object) -> Iterable[int]:
    return (of_key(bucket_id, key),)


def _copied(source_seq: int, bucket_id: int, key: str, *_: object) -> Iterable[int]:
    return (of_key(bucket_id, key),)


def _upload(upload: Any, *_: object) -> Iterable[int]:
    return (of_upload(upload.id),)


def _completed(upload: Any, *_: object) -> Iterable[int]:
    return of_upload(upload.id), of_key(upload.bucket_id, upload.key)


def _renamed(bucket_id: int, rename: Any) -> Iterable[int]:
    return of_key(bucket_id, rename.source), of_key(bucket_id, rename.target)


def _appended(bucket_id: int, key: str, found: Any, *_: object) -> Iterable[int]:
    pieces = found.body.startswith(PIECES)
    return (of_key(bucket_id, key), *([of_upload(multipart.pieces_number(found.body))] if pieces else []))


def _nothing(*_: object) -> Iterable[int]:
    return ()


SHARED: dict[Callable[..., Any], Callable[..., Iterable[int]]] = {
    objects.put_version: _key,
    objects.delete_version: _key,
    objects.copy_version: _copied,
    objects.set_headers: _key,
    objects.delete_versions: lambda bucket_id, entries: {of_key(bucket_id, entry.key) for entry in entries},
    rewriting.rename_object: _renamed,
    rewriting.append: _appended,
    expiry.expire: lambda bucket_id, settings, entries: {of_key(bucket_id, entry.key) for entry in entries},
    restores.ask_restore: _key,
    expiry.expire_uploads: lambda bucket_id, settings, numbers: set(map(of_upload, numbers)),
    multipart.create_upload: _nothing,
    multipart.put_part: _upload,
    multipart.copy_part: lambda source_seq, upload, part: _upload(upload),
    multipart.complete_upload: _completed,
    multipart.abort_upload: _upload,
    multipart.expand_discard: lambda discard, limit: (of_upload(multipart.pieces_number(discard.body)),),
    discards.forget_discards: lambda gone: (DISCARDS,),
    packs.open_pack: _nothing,
    packs.seal_pack: _nothing,
    packs.add_dead: _nothing,
    packs.refuse_blobs: _nothing,
    writers.register: _nothing,
    writers.retire: _nothing,
    writers.reserve_ids: _nothing,
    writers.retire_range: _nothing,
    writers.declare_dead: _nothing,
    decisions.open_journal: _nothing,
    decisions.decided: lambda *_: (JOURNALS,),
    decisions.set_journal: lambda *_: (JOURNALS,),
    decisions.forget_journals: lambda *_: (JOURNALS,),
    deliveries.add_log_lines: _nothing,
    deliveries.forget_log_lines: _nothing,
    deliveries.forget_messages: _nothing,
    identities.add_session: _nothing,
    intents.begin_put: lambda incarnation, bucket_id, key, *_: _key(bucket_id, key),
    intents.begin_delete: lambda incarnation, bucket_id, key, *_: _key(bucket_id, key),
    intents.begin_complete: lambda incarnation, upload, *_: _completed(upload),
    intents.commit_intent: _nothing,
    intents.drop_intent: _nothing,
    intents.adopt: lambda bucket_id, owner, since, found: {of_key(bucket_id, file.key) for file in found},
    intents.forget_vanished: lambda bucket_id, vanished: {of_key(bucket_id, key) for key, _ in vanished},
    intents.set_hashes: _nothing,
    intents.forget_unhashed: _nothing,
}
"""The locks of those whose arguments tell them; the rest (`also` of `Writer.submit`) is looked up before."""


def locks_of(function: Callable[..., Any], arguments: tuple[Any, ...], also: Iterable[int] = ()) -> Locks | None:
    """The locks of an operation, in order; None for one that must be alone."""
    find = SHARED.get(function) or SHARED.get(getattr(function, "changes", function))
    if find is None:
        return None
    found = sorted({*find(*arguments), *also})
    return tuple(found) if len(found) <= MOST else None
