"""Changes that are told to others: their messages are written down in the transaction of the change itself.

Whoever begins a change within `telling` has it told, in whatever task that was started there. `Teller` says what there
is to tell; a change that failed tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol, TypeVar

from app.index.base import Deletion
from app.index.deliveries import NewMessage
from app.index.lifecycle import OBJECT, Expired
from app.index.rewrites import Rename
from app.index.rows import Bucket, Committed, NewVersion, Upload
from app.index.steps import Draw, Transaction
from app.index.transactions import expiry, multipart, objects, restores, rewriting, transitions
from app.index.transactions.deliveries import add_messages
from app.index.transitions import Reclassed
from app.index.version_rows import Deleted

T = TypeVar("T")

PUT, DELETED, MARKED, EXPIRED, RENEWED = "put", "deleted", "marked", "expired", "renewed"
RECLASSED = "reclassed"
"""Kinds of changes: a new version, one that was removed (or none that is kept), a new delete marker; a current object
that expired, by whichever of the two; other headers of a version, whose new number `seq` then is; another storage
class of one."""


class Told(NamedTuple):
    """What became of one key. `size` and `etag` are those of a new version, `modified` is milliseconds.

    `seq` is the number of the row, but for who is told: then it is greater than that of any change of the key before.
    """

    kind: str
    bucket_id: int
    key: str
    seq: int
    version_id: str
    modified: int
    size: int = 0
    etag: str = ""
    storage_class: str = ""
    """Of RECLASSED: the new one."""


class Teller(Protocol):
    """Makes messages of changes. Called in the thread that commits: it must do no more than that."""

    def messages(self, change: Told) -> Sequence[NewMessage]:
        """What is to be sent of a change."""
        ...


_TELLER: ContextVar[Teller | None] = ContextVar("teller", default=None)


@contextmanager
def telling(teller: Teller | None) -> Iterator[None]:
    """Have changes told that are begun within."""
    token = _TELLER.set(teller)
    try:
        yield
    finally:
        _TELLER.reset(token)


class Telling:
    """A transaction that tells of its change. `changes` is the function without that."""

    __slots__ = ("_of", "_teller", "changes")

    def __init__(self, changes: Callable[..., Transaction[Any]], of: Callable[..., list[Told]], teller: Teller) -> None:
        self.changes = changes
        self._of = of
        self._teller = teller

    def __call__(self, *arguments: Any) -> Transaction[Any]:
        """The transaction."""
        result = yield from self.changes(*arguments)
        found = self._of(result, *arguments)
        if found:
            first = yield Draw(len(found))  # behind all that was told of these keys before
            told = [change._replace(seq=seq) for seq, change in enumerate(found, first)]
            yield from add_messages([message for change in told for message in self._teller.messages(change)])
        return result


def of_put(done: Committed, bucket_id: int, key: str, new: NewVersion, *_: object) -> list[Told]:
    """A new version."""
    return [Told(PUT, bucket_id, key, done.seq, done.version_id, done.modified, new.size, new.etag)]


def of_copy(done: Committed, source_seq: int, bucket_id: int, key: str, new: NewVersion, *_: object) -> list[Told]:
    """A new version that has the bytes of another one."""
    return of_put(done, bucket_id, key, new)


def of_complete(done: Committed, upload: Upload, chosen: object, new: NewVersion, *_: object) -> list[Told]:
    """A new version made of parts."""
    return of_put(done, upload.bucket_id, upload.key, new)


def of_delete(
    done: Committed | Deleted | None, bucket_id: int, key: str, version_id: str | None = None, *_: object
) -> list[Told]:
    """What became of a key that was to be deleted; nothing when there was nothing."""
    if done is None:
        return []
    marked = isinstance(done, Deleted) and done.marker and version_id is None
    return [Told(MARKED if marked else DELETED, bucket_id, key, done.seq, done.version_id, done.modified)]


def of_deletes(done: Sequence[Any], bucket_id: int, entries: Sequence[Deletion]) -> list[Told]:
    """The same of many."""
    found = zip(done, entries, strict=True)
    return [
        change
        for one, entry in found
        if not isinstance(one, Exception)
        for change in of_delete(one, bucket_id, entry.key, entry.version_id)
    ]


def of_expired(done: Sequence[bool] | None, bucket_id: int, settings: str, entries: Sequence[Expired]) -> list[Told]:
    """What lifecycle rules took away."""
    return [
        Told(EXPIRED if entry.states == OBJECT else DELETED, bucket_id, entry.key, entry.seq, entry.version_id, 0)
        for entry, gone in zip(entries, done or (), strict=done is not None)
        if gone
    ]


def of_reclassed(
    done: Sequence[int] | None, bucket: Bucket, settings: str | None, entries: Sequence[Reclassed]
) -> list[Told]:
    """What lifecycle rules gave another storage class."""
    return [
        Told(RECLASSED, bucket.id, entry.key, seq, entry.version_id, 0, entry.size, entry.etag, entry.storage_class)
        for entry, seq in zip(entries, done or (), strict=done is not None)
        if seq
    ]


def of_headers(done: int, bucket_id: int, key: str, *_: object) -> list[Told]:
    """Other headers of a version."""
    return [Told(RENEWED, bucket_id, key, done, "", 0)]


def of_append(done: Committed, bucket_id: int, key: str, found: object, new: NewVersion, *_: object) -> list[Told]:
    """A version with more bytes."""
    return of_put(done, bucket_id, key, new)


def of_rename(done: Committed | None, bucket_id: int, rename: Rename) -> list[Told]:
    """An object that has another key; who tells of it knows its size and ETag."""
    if done is None:
        return []
    made = Told(PUT, bucket_id, rename.target, done.seq, done.version_id, done.modified)
    return [made, made._replace(kind=DELETED, key=rename.source)]


OF: dict[Callable[..., Transaction[Any]], Callable[..., list[Told]]] = {
    objects.put_version: of_put,
    objects.copy_version: of_copy,
    objects.delete_version: of_delete,
    objects.delete_versions: of_deletes,
    objects.set_headers: of_headers,
    multipart.complete_upload: of_complete,
    expiry.expire: of_expired,
    transitions.reclass: of_reclassed,
    restores.ask_restore: of_headers,
    rewriting.append: of_append,
    rewriting.rename_object: of_rename,
}
"""What becomes of keys, by the transaction that does it."""


def told(function: Callable[..., Transaction[T]]) -> Callable[..., Transaction[T]]:
    """The transaction, which tells of its change if it is begun within `telling`."""
    teller = _TELLER.get()
    return function if teller is None else Telling(function, OF[function], teller)
