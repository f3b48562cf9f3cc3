"""What passes through the driver seam: blobs on their way in and out of a store, and what it tells of itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from threading import Lock
from typing import NamedTuple, ParamSpec, Protocol, TypeVar

from storage_drivers.threads import Threads

P = ParamSpec("P")
T = TypeVar("T")

Buffer = bytes | bytearray | memoryview


class Durability(StrEnum):
    """What a driver promises when `put` returns."""

    FULL = "full"
    """The bytes and their directory entry survive a power cut."""
    RELAXED = "relaxed"
    """The bytes survive the death of the process, not a power cut."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a driver can do; the store chooses its ways by it."""

    durability: Durability
    descriptors: bool
    """`read` gives `FileSlice`s whose descriptor may be handed to sendfile(2)."""
    nowait: bool
    """`read_now` can answer from the page cache without blocking."""
    append_limit: int = 0
    """Bytes up to which a body may be given to `append`; 0 when the driver has no packs to append to."""
    pack_overhead: int = 0
    """Bytes of a pack that belong to no record."""
    one_process: bool = False
    """What is stored ends with the process that stored it, and no other one sees it: one worker, nothing beside it."""


UNTOLD = (1 << 63) - 1
"""Bytes of a store that cannot tell how large it is."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Space of the backing store in bytes (`UNTOLD` where it cannot tell), and its inodes (0 where it has none)."""

    total: int
    free: int
    inodes: int
    free_inodes: int


class ClaimedRecord(NamedTuple):
    """A record of a pack: where it is, its bytes in all, and what it says of itself (not verified)."""

    locator: str
    total: int
    claim: bytes


class PackFile(NamedTuple):
    """Bytes of a pack's file, and how many of them take up space."""

    size: int
    allocated: int


class Source(Protocol):
    """What a blob is written from."""

    @property
    def size(self) -> int | None:
        """Bytes that `read` will give in all, or None when not known."""
        ...

    async def read(self) -> Buffer:
        """The next piece, up to about 1 MiB; empty at the end. Raises when the body is broken off or malformed."""
        ...

    def digest(self, piece: Buffer) -> None:
        """Take a piece into the hashes. Called once a piece, in order, in the thread that writes it or beside it."""
        ...

    def verify(self) -> None:
        """Called after the last piece and before the blob could be found. Raises to refuse it."""
        ...


class Append:
    """A small body on its way into a pack.

    `claim` is called once the body is verified, in the thread that writes, and gives what the record says of itself.
    `done` is called in a thread of the driver's when the record is as durable as declared, with `locator` set, or when
    it failed, with `error` set (a `DriverError`, or what the source raised).
    """

    __slots__ = ("blob_id", "claim", "done", "error", "locator", "piece", "source", "timings")

    def __init__(
        self,
        blob_id: int,
        piece: Buffer,
        source: Source,
        claim: Callable[[], bytes],
        done: Callable[[Append], None],
        timings: dict[str, float],
    ) -> None:
        self.blob_id = blob_id
        self.piece = piece
        self.source = source
        self.claim = claim
        self.done = done
        self.timings = timings
        self.locator = ""
        self.error: Exception | None = None


def no_claim() -> bytes:
    """The claim of a blob that says nothing of itself."""
    return b""


class PackBook(Protocol):
    """Where a driver's packs are written down. Called in the driver's threads; both raise any exception to refuse."""

    def open_pack(self) -> int:
        """Enter a new pack of this writer and return its id, which nothing else will ever use."""
        ...

    def seal_pack(self, pack_id: int, size: int) -> None:
        """No record will be added to a pack of `size` bytes any more."""
        ...


class Decision(NamedTuple):
    """A record of a journal."""

    number: int
    claim: bytes
    body: bytes


class FileSlice:
    """`count` bytes at `offset` of an open descriptor. Whoever got it calls `release`."""

    __slots__ = ("_fd", "_held", "_lock", "count", "fd", "offset", "threads")

    def __init__(self, fd: int, offset: int, count: int) -> None:
        self.fd = fd
        self.offset = offset
        self.count = count
        self.threads: Threads | None = None
        """Where to read it: on a mount that hangs it is these threads that hang. None: in any."""
        self._fd = fd
        self._held = 0
        self._lock = Lock()

    def hop(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Begin a call that reads it. Raises as `Threads.call`."""
        if self.threads is not None:
            return self.threads.call(call, *args, **kwargs)
        return asyncio.get_running_loop().run_in_executor(None, partial(call, *args, **kwargs))

    def hold(self) -> None:
        """Keep the descriptor open beyond `release`, until `let_go`: a thread uses it that nobody may wait for."""
        with self._lock:
            self._held += 1

    def let_go(self) -> None:
        """The end of `hold`, in any thread."""
        with self._lock:
            self._held -= 1
        self._close_unused()

    def release(self) -> None:
        """Give the descriptor back; closed when nobody holds it. Again is no error."""
        self.fd = -1
        self._close_unused()

    def _close_unused(self) -> None:
        with self._lock:
            fd = self._fd
            if self._held or self.fd >= 0:
                return
            self._fd = -1
        if fd >= 0:
            try:
                os.close(fd)
            except OSError:
                pass  # what was read is no worse when the mount objects
