"""What can go wrong with a backing store, and the one place where errno becomes one of these:

DriverError
  StoreFull         no space, inodes or quota left (ENOSPC, EDQUOT)
  ReadOnlyStore     the mount takes no writes (EROFS)
  StoreFailed       anything else the mount answered (EIO, ESTALE, EACCES, EMFILE, …), or not the store we expect
    StoreUnfit      at start: the mount cannot keep the promise asked of it
    StoreGone       there is no store where it was, or it cannot be read
      StoreReplaced there is another one
    StoreSilent     the mount does not answer: what was begun may still be done
  BlobMissing       a committed blob is not there (ENOENT): an integrity alarm, never "no such key"
  BlobDamaged       a committed blob is not what was written
"""

from __future__ import annotations

import errno
import os
from types import TracebackType


class DriverError(Exception):
    """Base of all errors of a backing store. The message may name a locator, never a path."""


class StoreFull(DriverError):
    """No space, inodes or quota left."""


class ReadOnlyStore(DriverError):
    """The mount takes no writes."""


class StoreFailed(DriverError):
    """The mount failed, or it is not the store that was expected."""


class StoreUnfit(StoreFailed):
    """A store refuses to start, since its mount cannot keep the promise asked of it.

    `kind` is the class of the reason: `exclusive-create`, `integrity`, `durability`, `no-answer` or `error`.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"unfit ({kind}): {reason}")
        self.kind = kind


class StoreGone(StoreFailed):
    """There is no store where it was, it cannot be read, or it is another one."""


class StoreReplaced(StoreGone):
    """There is another store, or another generation of it. The message says which."""


class StoreSilent(StoreFailed):
    """The mount does not answer. Nobody waits any more for what was begun, and it may still be done."""


class BlobMissing(DriverError):
    """A committed blob is not there."""


class BlobDamaged(DriverError):
    """A committed blob is not what was written."""


_CLASSES: dict[int | None, type[DriverError]] = {
    errno.ENOSPC: StoreFull,
    errno.EDQUOT: StoreFull,
    errno.EROFS: ReadOnlyStore,
}


class map_errors:
    """Turn an OSError of the block into a DriverError; `committed` names a blob that must be there."""

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
