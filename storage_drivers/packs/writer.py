"""Group commit of small bodies to a pack: one write and one sync a group.

Two threads: one hashes and writes the next group while the other syncs the last one. A failed write or sync is final:
it fails what is not synced yet, and seals the pack for ever (law 4); the next group opens a new one.
"""

from __future__ import annotations

import errno
import os
import queue
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, perf_counter
from typing import NamedTuple

from sluice_s3.storage_drivers.base import AppendRequest, Buffer, PackRegistry
from sluice_s3.storage_drivers.errors import DriverError, StoreFailed, map_errors
from sluice_s3.storage_drivers.fsutil import FILE_MODE, read_exactly, write_all, write_buffers
from sluice_s3.storage_drivers.packs import format
from sluice_s3.storage_drivers.packs.outcomes import Outcomes, fail
from sluice_s3.storage_drivers.packs.reader import parse_locator
from sluice_s3.storage_drivers.threads import BackgroundThread

LARGEST_GROUP = 256
GROUP_BYTES = 8 << 20
INLINE_BYTES = 256 << 10
"""Bytes of bodies that are hashed and written on the event loop at once; less than a millisecond."""
SLOW_SECONDS = 0.05
"""A group that took longer on the event loop had to wait: for a while the thread writes."""
SLOW_PAUSE_SECONDS = 10.0
REFUSED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""Errors after which a mount has certainly created no file."""
OPEN = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC


class WriteChecks(NamedTuple):
    """Checks for mounts that are not trusted."""

    ahead: int = 0
    """Bytes by which a pack is extended before records are written there; 0: by each write."""
    size: bool = False
    """Whether to check the size of a pack after each group."""
    read_back: bool = False
    """Whether to read each group again, through another descriptor."""


NO_CHECKS = WriteChecks()


class Pack:
    """The pack that is being written."""

    __slots__ = ("failed", "fd", "full", "id", "length", "offset", "salt", "synced", "written")

    def __init__(self, pack_id: int, fd: int, salt: int) -> None:
        self.id = pack_id
        self.fd = fd
        self.salt = salt
        self.offset = format.PACK_HEADER
        self.written = self.offset
        """The end of the last whole group that was written."""
        self.length = self.offset
        """The end of the file, if it was extended."""
        self.synced = self.offset
        """The end of the last group that was synced: the sealed size of the pack."""
        self.full = False
        """Whether a write failed: nothing more is written here."""
        self.failed = False
        """Whether a sync failed: nothing more becomes durable here."""


Written = tuple[Pack | None, list[AppendRequest], int]
"""A group for the syncing thread, and its end. No entries: seal the pack. No pack: seal all."""


class PackWriter:
    """Writer of packs.

    `path` returns the file of a pack; `synced` syncs its directory, and is None for a relaxed store.
    """

    def __init__(
        self,
        book: PackRegistry,
        path: Callable[[int], str],
        sync_entry: Callable[[int], None] | None,
        size: int,
        at: Callable[[str], None],
        checks: WriteChecks = NO_CHECKS,
    ) -> None:
        self._checks = checks
        self._book = book
        self._path = path
        self._sync_entry = sync_entry
        self._size = size
        self._at = at
        self._queue: queue.SimpleQueue[AppendRequest | None] = queue.SimpleQueue()
        self._written: queue.SimpleQueue[Written] = queue.SimpleQueue()
        self._pack: Pack | None = None
        self._closed = False
        self._slow_until = 0.0
        self._turn = threading.Lock()
        """Held by the thread, or the event loop, that writes."""
        self._outcomes = Outcomes()
        self._writing: object = None
        self._syncing: object = None
        """What each thread does, a new object for each group."""
        self._unsealed: list[Pack] = []
        """Ended packs that the registry does not know as sealed."""
        self._spare = 0
        """A registered pack without a file, because the mount refused to create it."""
        self._syncer = BackgroundThread(self._sync)
        try:
            self._writer = BackgroundThread(self._write)
        except (RuntimeError, MemoryError):
            self._written.put((None, [], 0))  # the other thread ends
            raise

    def append(self, entry: AppendRequest) -> None:
        """See `Driver.append`."""
        if self._closed:
            raise StoreFailed("the store is closed")
        self._queue.put(entry)

    def try_write(self, group: list[AppendRequest]) -> bool:
        """Write a group on the event loop, if nothing must be waited for.

        For writers without syncs, on a mount that answers at once: then a write goes to the page cache, and costs less
        than waking the thread and being woken by it.
        """
        started = monotonic()
        size = sum(len(entry.piece) for entry in group)
        if self._closed or started < self._slow_until or size > INLINE_BYTES or len(group) > LARGEST_GROUP:
            return False
        if self._queue.qsize() or not self._turn.acquire(blocking=False):
            return False
        try:
            pack = self._pack
            if pack is None or not self._has_room(pack, size):
                return False  # to open one takes an answer of the event loop
            if self._outcomes.begin(group):
                self._write_group(group)
        finally:
            self._turn.release()
        ended = monotonic()
        if ended - started > SLOW_SECONDS:
            self._slow_until = ended + SLOW_PAUSE_SECONDS
        return True

    def end(self) -> None:
        """Write what is queued, seal the pack, and refuse more. Does not wait."""
        self._closed = True
        self._queue.put(None)

    def join(self, until: float) -> None:
        """Wait for that, at most until `time.monotonic()` reaches `until`."""
        for thread in (self._writer, self._syncer):
            thread.join(max(0.0, until - monotonic()))

    @property
    def load(self) -> int:
        """The approximate number of entries without an outcome."""
        return self._queue.qsize() + len(self._outcomes)

    @property
    def troubles(self) -> int:
        """The number of groups that failed by the mount."""
        return self._outcomes.troubles

    def running(self) -> list[object]:
        """Return the groups that are being written and synced now."""
        return [group for group in (self._writing, self._syncing) if group is not None]

    def give_up(self, error: DriverError) -> None:
        """Fail everything that is not synced, even in a hanging thread, and refuse more.

        Never waits.
        """
        self._closed = True
        entries = self._outcomes.abandon(error)
        while True:
            try:
                entry = self._queue.get_nowait()
            except queue.Empty:
                break
            if entry is not None:
                entries.append(entry)
        self._queue.put(None)
        fail(entries, error)

    # the writing thread, or the event loop in its turn
    def _write(self) -> None:
        _let_others_finish()
        while (first := self._queue.get()) is not None:
            with self._turn:
                if self._outcomes.begin(group := self._take(first)):
                    self._writing = object()
                    self._write_group(group)
                    self._writing = None
        self._retire()
        self._written.put((None, [], 0))

    def _take(self, first: AppendRequest) -> list[AppendRequest]:
        group, size = [first], len(first.piece)
        try:
            while len(group) < LARGEST_GROUP and size < GROUP_BYTES:
                entry = self._queue.get_nowait()
                if entry is None:
                    self._queue.put(None)
                    break
                group.append(entry)
                size += len(entry.piece)
        except queue.Empty:
            pass
        return group

    def _write_group(self, group: list[AppendRequest]) -> None:
        try:
            pack = self._current(sum(len(entry.piece) for entry in group))
        except Exception as error:
            self._outcomes.fail(group, error)
            return
        started = perf_counter()
        entries, buffers = self._records(pack, group)
        if not entries:
            return
        try:
            with map_errors():
                if self._checks.ahead and pack.offset > pack.length:
                    pack.length = pack.offset + self._checks.ahead
                    os.ftruncate(pack.fd, pack.length)
                write_buffers(pack.fd, buffers, pack.written)
                if self._sync_entry is None:
                    self._look_again(pack, entries, pack.offset)
        except Exception as error:  # of memory too: this thread must go on, or all later writers wait for ever
            pack.full = True
            self._outcomes.fail(entries, error)
            return
        pack.written = pack.offset
        spent = perf_counter() - started
        for entry in entries:
            entry.timings["write"] = spent
        self._at("pack.written")
        if self._sync_entry is None:
            pack.synced = pack.written
            self._outcomes.finish(entries)
        else:
            self._written.put((pack, entries, pack.written))

    def _records(self, pack: Pack, group: list[AppendRequest]) -> tuple[list[AppendRequest], list[Buffer]]:
        """Return the group as buffers for the disk, without entries whose body fails its check."""
        entries: list[AppendRequest] = []
        buffers: list[Buffer] = []
        for entry in group:
            try:
                body = entry.piece
                entry.source.digest(body)
                entry.source.verify()
                header = entry.make_header()
            except Exception as error:
                self._outcomes.fail([entry], error)
                continue
            offset = pack.offset
            head = format.record_head(format.BLOB, entry.blob_id, offset, header, body, pack.salt)
            total = len(head) + len(header) + len(body)
            entry.locator = f"p:{pack.id:x}.{offset:x}.{total:x}.{entry.blob_id:x}"
            pack.offset = offset + total
            buffers += (head + header, body)
            entries.append(entry)
        return entries, buffers

    def _current(self, size: int) -> Pack:
        pack = self._pack
        if pack is not None and not self._has_room(pack, size):
            self._retire()
            pack = None
        if pack is None:
            pack = self._pack = self._open()
        pack.offset = pack.written
        return pack

    def _has_room(self, pack: Pack, size: int) -> bool:
        return not (pack.failed or pack.full or pack.written + size > self._size)

    def _open(self) -> Pack:
        pack_id, self._spare = self._spare or self._book.open_pack(), 0
        path = self._path(pack_id)
        with map_errors():
            try:
                fd = os.open(path, OPEN, FILE_MODE)
            except OSError as error:
                if error.errno in REFUSED:
                    self._spare = pack_id
                raise
            try:
                salt = secrets.randbits(64)
                write_all(fd, format.pack_header(pack_id, salt))
                if self._sync_entry is not None:
                    os.fsync(fd)
                    self._sync_entry(pack_id)
            except BaseException:
                _close_quietly(fd)
                os.unlink(path)
                self._spare = pack_id
                raise
        self._at("pack.created")
        return Pack(pack_id, fd, salt)

    def _retire(self) -> None:
        """Pass the pack to the syncing thread, which seals it behind its last group."""
        pack, self._pack = self._pack, None
        if pack is not None:
            self._written.put((pack, [], pack.written))

    # the syncing thread
    def _sync(self) -> None:
        _let_others_finish()
        ahead: Written | None = None
        while True:
            pack, entries, end = ahead or self._written.get()
            ahead = None
            if pack is None:
                return
            if not entries:
                self._seal(pack)
                continue
            # One sync covers everything written to the pack by now.
            while ahead is None and not self._written.empty():
                more = self._written.get()
                if more[0] is pack and more[1]:
                    entries += more[1]
                    end = more[2]
                else:
                    ahead = more
            self._syncing = object()
            self._sync_group(pack, entries, end)
            self._syncing = None

    def _sync_group(self, pack: Pack, entries: list[AppendRequest], end: int) -> None:
        started = perf_counter()
        try:
            if pack.failed:
                raise StoreFailed("an earlier sync of the pack failed")
            with map_errors():
                os.fdatasync(pack.fd)
                self._look_again(pack, entries, end)
            if self._outcomes.abandon_error is not None:  # nobody waits for them: the pack ends before them
                raise self._outcomes.abandon_error
            self._at("pack.synced")
        except Exception as error:  # as above
            pack.failed = True
            self._outcomes.fail(entries, error)
            return
        pack.synced = end
        spent = perf_counter() - started
        for entry in entries:
            entry.timings["sync"] = spent
        self._outcomes.finish(entries)

    def _look_again(self, pack: Pack, entries: list[AppendRequest], end: int) -> None:
        """Check a group on a mount that is not trusted. Raises StoreFailed, BlobDamaged."""
        if self._checks.size and os.stat(self._path(pack.id)).st_size < end:
            raise StoreFailed(f"a pack of {end} bytes is shorter")
        if not self._checks.read_back:
            return
        fd = os.open(self._path(pack.id), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            for entry in entries:
                place = parse_locator(entry.locator)
                whole = memoryview(read_exactly(fd, place.offset, place.total))
                format.parse_record(whole, place.offset, place.blob_id, pack.salt)
        finally:
            os.close(fd)

    def _seal(self, pack: Pack) -> None:
        _close_quietly(pack.fd)  # every group was synced, or failed
        self._unsealed.append(pack)
        with suppress(Exception):  # again with the next one; after the end of this process by the sweep
            while self._unsealed:
                self._book.seal_pack(self._unsealed[-1].id, self._unsealed[-1].synced)
                self._unsealed.pop()


def _let_others_finish() -> None:
    """Keep the kernel from preempting another thread for this one (sched(7), SCHED_BATCH).

    On a shared core this thread then finds more to write in one group.
    """
    if hasattr(os, "sched_setscheduler"):
        with suppress(OSError):  # a sandbox forbids it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _close_quietly(fd: int) -> None:
    with suppress(OSError):
        os.close(fd)
