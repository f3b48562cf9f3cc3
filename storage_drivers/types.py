"""Types of the driver interface: bodies, records, slices, and what a store reports of itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from threading import Lock
from typing import NamedTuple, ParamSpec, Protocol, TypeVar

from sluice_s3.storage_drivers.threads import StoreThreadPool

P = ParamSpec("P")
T = TypeVar("T")

Buffer = bytes | bytearray | memoryview


class Durability(StrEnum):
    """The promise of a driver when `put` returns."""

    FULL = "full"
    """The bytes and their directory entry survive a power cut."""
    RELAXED = "relaxed"
    """The bytes survive the death of the process, not a power cut."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of a driver, by which the store chooses its methods."""

    durability: Durability
    descriptors: bool
    """Whether `read` returns `FileSlice`s whose descriptor may be passed to sendfile(2)."""
    nowait: bool
    """Whether `try_read` can answer from the page cache without blocking."""
    append_limit: int = 0
    """Bytes up to which a body may go to `append`; 0 when the driver has no packs for it."""
    pack_overhead: int = 0
    """Bytes of a pack that belong to no record."""
    discards_at_once: int = 1
    """Blobs of a call of `discard_many` that are removed concurrently."""
    one_process: bool = False
    """Whether stored data ends with its process and is invisible to others: one worker, nothing beside it."""


UNKNOWN_SIZE = (1 << 63) - 1
"""Bytes of a store that cannot report its size."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Space of the backing store in bytes, and its inodes.

    Bytes are `UNKNOWN_SIZE` if it cannot report its size; inodes are 0 if it has no count of them.
    """

    total: int
    free: int
    inodes: int
    free_inodes: int


class RecordInfo(NamedTuple):
    """A record of a pack: its locator, total bytes, and unverified recovery header."""

    locator: str
    total: int
    recovery_header: bytes


class PackFile(NamedTuple):
    """Bytes of a pack's file, and how many are allocated."""

    size: int
    allocated: int


class BodySource(Protocol):
    """The source of a blob's bytes."""

    @property
    def size(self) -> int | None:
        """The bytes that `read` will return in all; None when not known."""
        ...

    async def read(self) -> Buffer:
        """Return the next piece, up to about 1 MiB; empty at the end.

        Raises when the body is broken off or malformed.
        """
        ...

    def digest(self, piece: Buffer) -> None:
        """Hash a piece.

        Called once a piece, in order, in the thread that writes it or beside it.
        """
        ...

    def verify(self) -> None:
        """Verify the body, after the last piece and before the blob can be found.

        Raises to refuse it.
        """
        ...


class AppendRequest:
    """A small body on its way into a pack.

    `make_header` is called once the body is verified, in the thread that writes, and returns the recovery header.
    `on_done` is called there or in another thread of the driver when the record is as durable as declared, with
    `locator` set, or when it failed, with `error` set (a `DriverError`, or what the source raised). Small groups of a
    store that is not durable are written on the event loop.
    """

    __slots__ = ("blob_id", "error", "locator", "make_header", "on_done", "piece", "source", "timings")

    def __init__(
        self,
        blob_id: int,
        piece: Buffer,
        source: BodySource,
        make_header: Callable[[], bytes],
        on_done: Callable[[AppendRequest], None],
        timings: dict[str, float],
    ) -> None:
        self.blob_id = blob_id
        self.piece = piece
        self.source = source
        self.make_header = make_header
        self.on_done = on_done
        self.timings = timings
        self.locator = ""
        self.error: Exception | None = None


def no_crash_hook(_: str) -> None:
    """Do nothing: the crash hook outside of tests."""


def no_recovery_header() -> bytes:
    """Return no recovery header."""
    return b""


class PackRegistry(Protocol):
    """The registry of a driver's packs.

    Called in the driver's threads; both methods may raise any exception to refuse.
    """

    def open_pack(self) -> int:
        """Register a new pack of this writer and return its unique id."""
        ...

    def seal_pack(self, pack_id: int, size: int) -> None:
        """Note that a pack is complete, with `size` bytes."""
        ...


class JournalRecord(NamedTuple):
    """A record of a journal."""

    number: int
    header: bytes
    body: bytes


class FileSlice:
    """`count` bytes at `offset` of an open descriptor. The owner must call `release`."""

    __slots__ = ("_fd", "_holds", "_lock", "count", "fd", "nowait", "offset", "threads")

    def __init__(self, fd: int, offset: int, count: int) -> None:
        self.fd = fd
        self.offset = offset
        self.count = count
        self.threads: StoreThreadPool | None = None
        """The threads that read it: on a mount that hangs only these hang. None: any thread."""
        self.nowait = False
        """Whether what the page cache holds of it may be read on the event loop: no mount that hangs is under it."""
        self._fd = fd
        self._holds = 0
        self._lock = Lock()

    def hop(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Begin a call that reads it. Raises as `StoreThreadPool.call`."""
        if self.threads is not None:
            return self.threads.call(call, *args, **kwargs)
        return asyncio.get_running_loop().run_in_executor(None, partial(call, *args, **kwargs))

    def hold(self) -> None:
        """Keep the descriptor open beyond `release`, until `let_go`, for an abandonable thread."""
        with self._lock:
            self._holds += 1

    def let_go(self) -> None:
        """End `hold`, in any thread."""
        with self._lock:
            self._holds -= 1
        self._close_unused()

    def release(self) -> None:
        """Release the descriptor; it is closed without holds. A second call is no error."""
        self.fd = -1
        self._close_unused()

    def _close_unused(self) -> None:
        with self._lock:
            fd = self._fd
            if self._holds or self.fd >= 0:
                return
            self._fd = -1
        if fd >= 0:
            try:
                os.close(fd)
            except OSError:
                pass  # the bytes read stay valid when the mount reports an error
