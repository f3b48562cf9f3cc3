"""The files of one tree store: written aside and renamed into place, opened without following anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from storage_drivers.base import Buffer, Durability, FileSlice, Source
from storage_drivers.tree import base
from storage_drivers.tree.base import Found, Seen, Stamp


def nowhere(_: str) -> None:
    """The crash hook of files that are not under test."""


class TreeFiles:
    """The plain files of one store. A *path* is relative to `root` and begins with the bucket; `threads` is lent.

    Every method raises `storage_drivers.errors.DriverError` and nothing of errno.
    """

    def __init__(
        self,
        root: Path,
        threads: ThreadPoolExecutor,
        *,
        durability: Durability = Durability.FULL,
        at: Callable[[str], None] = nowhere,
    ) -> None:
        self.root = root
        self.grain_ns = 0
        """A file changed less long ago than this may change again without another stamp; known once started."""

    async def start(self) -> None:
        """Make what is needed below ROOT/.sluice and try the mount. Raises StoreUnfit where it cannot rename over."""
        raise NotImplementedError

    # writing aside
    async def stage(
        self, blob_id: int, source: Source, timings: dict[str, float] | None = None, piece: Buffer | None = None
    ) -> Stamp:
        """Write a body aside, verified and as durable as declared; nothing remains on any error. As `Driver.put`."""
        raise NotImplementedError

    async def stage_pieces(self, blob_id: int, pieces: AsyncIterator[FileSlice | bytes]) -> Stamp:
        """The same of pieces that need no verifying, copied within the mount where that works.

        The iterator keeps its slices: it releases each when it is asked for the next, or closed.
        """
        raise NotImplementedError

    async def unstage(self, blob_id: int) -> bool:
        """Take away what was written aside; True when there was something."""
        raise NotImplementedError

    # into place
    async def place(self, bucket: str, key: str) -> str:
        """The path for a key that has none yet: its own when nothing is in the way now, else the escaped one."""
        raise NotImplementedError

    def escaped(self, bucket: str, key: str) -> str:
        """The path of a key that cannot be at its own; always possible."""
        raise NotImplementedError

    async def publish(self, blob_id: int, path: str) -> None:
        """Rename what was staged to `path`, over what is there; as durable as declared when it returns.

        Raises Collision when that has become impossible: what was staged is still there, take the escaped path.
        """
        raise NotImplementedError

    async def remove(self, path: str) -> bool:
        """Unlink the file; False when there was none. Either way it stays away after a power cut."""
        raise NotImplementedError

    # reading
    def locator(self, path: str, stamp: Stamp) -> str:
        """`t:<stamp>:<path>`."""
        return base.locator(path, stamp)

    def parse(self, locator: str) -> tuple[str, Stamp]:
        """The path and the stamp of a locator. Raises BlobMissing for what is none."""
        return base.parse(locator)

    async def open(self, locator: str, offset: int, length: int) -> FileSlice:
        """Open at most `length` bytes at `offset`. Raises FileChanged, FileGone; StoreFailed when not mounted."""
        raise NotImplementedError

    def still(self, opened: FileSlice, locator: str) -> bool:
        """Whether an open slice's file has the locator's stamp still. Blocks: call it in a thread."""
        raise NotImplementedError

    async def find(self, path: str) -> Stamp | None:
        """The stamp of the regular file at exactly this path. Raises StoreFailed when the store is not mounted."""
        raise NotImplementedError

    def settled(self, stamp: Stamp) -> bool:
        """Whether a change after this stamp would have another one, by the grain of the mount's times."""
        raise NotImplementedError

    # buckets
    def key_of(self, bucket: str, path: str) -> str | None:
        """The key whose file is at a path, None when there can be none."""
        raise NotImplementedError

    def scan(self, bucket: str, seen: Seen | None = None) -> AsyncIterator[list[Found]]:
        """Every file of a bucket in batches, in no order; what vanishes meanwhile is left out. Counts into `seen`."""
        raise NotImplementedError

    async def make_bucket(self, bucket: str) -> None:
        """Make the bucket's directory, durable; one that is there is no error."""
        raise NotImplementedError

    async def remove_bucket(self, bucket: str) -> bool:
        """Remove the directories of a bucket that are empty; True when its own is gone."""
        raise NotImplementedError
