"""Errors of a backing store; only this module turns errno into one of these.

DriverError
  StoreFull         no space, inodes or quota left (ENOSPC, EDQUOT)
  ReadOnlyStore     the mount refuses writes (EROFS)
  StoreFailed       any other error of the mount (EIO, ESTALE, EACCES, EMFILE, …), or not the expected store
    StoreUnfit      at start: the mount cannot keep the required promise
    StoreGone       the store is missing or unreadable
      StoreReplaced there is another store
    StoreSilent     the mount does not answer: calls under way may still take effect
  BlobMissing       a committed blob is missing (ENOENT): an integrity alarm, never "no such key"
  BlobDamaged       a committed blob differs from what was written
"""

from __future__ import annotations

import errno
import os
from types import TracebackType


class DriverError(Exception):
    """Base of all errors of a backing store.

    The message may name a locator, never a path.
    """


class StoreFull(DriverError):
    """No space, inodes or quota left."""


class ReadOnlyStore(DriverError):
    """The mount refuses writes."""


class StoreFailed(DriverError):
    """The mount failed, or it is not the expected store."""


class StoreUnfit(StoreFailed):
    """A store refuses to start, since its mount cannot keep the required promise.

    `kind` is the class of the reason: `exclusive-create`, `integrity`, `durability`, `no-answer` or `error`.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"unfit ({kind}): {reason}")
        self.kind = kind


class StoreGone(StoreFailed):
    """The store is missing, unreadable, or replaced by another."""


class StoreReplaced(StoreGone):
    """There is another store, or another generation of it. The message says which."""


class StoreSilent(StoreFailed):
    """The mount does not answer.

    Calls under way have no caller any more, and may still take effect.
    """


class BlobMissing(DriverError):
    """A committed blob is missing."""


class BlobDamaged(DriverError):
    """A committed blob differs from what was written."""


_CLASSES: dict[int | None, type[DriverError]] = {
    errno.ENOSPC: StoreFull,
    errno.EDQUOT: StoreFull,
    errno.EROFS: ReadOnlyStore,
}


class map_errors:
    """Turn an OSError of the block into a DriverError.

    `committed` names a blob that must exist.
    """

    __slots__ = ("committed",)

    def __init__(self, committed: str = "") -> None:
        self.committed = committed

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if not isinstance(error, OSError):
            return
        if self.committed and error.errno == errno.ENOENT:
            raise BlobMissing(self.committed) from error
        reason = os.strerror(error.errno) if error.errno is not None else type(error).__name__
        raise _CLASSES.get(error.errno, StoreFailed)(reason) from error
