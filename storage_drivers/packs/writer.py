"""Appends small bodies to a pack: one write and one sync for all that wait together.

Two threads: one hashes and writes the next group while the other syncs the last one. A failed write or sync is final:
it fails what is not synced yet, and seals the pack for ever (law 4); the next group opens a new one.
"""

from __future__ import annotations

import errno
import logging
import os
import queue
import secrets
import threading
from collections.abc import Callable
from time import monotonic, perf_counter
from typing import NamedTuple

from storage_drivers.base import Append, Buffer, PackBook
from storage_drivers.errors import DriverError, StoreFailed, map_errors
from storage_drivers.files import FILE_MODE, read_exactly, write_all, write_buffers
from storage_drivers.packs import pack_format
from storage_drivers.packs.reader import place_of

logger = logging.getLogger("sluice.store")

LARGEST_GROUP = 256
GROUP_BYTES = 8 << 20
REFUSED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""Why a mount makes no file, for certain."""
OPEN = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC


class Checks(NamedTuple):
    """What a mount is not trusted with."""

    ahead: int = 0
    """Bytes by which a pack is made longer before records come there, 0: by each write."""
    size: bool = False
    """Look at the size of a pack after each group."""
    read_back: bool = False
    """Read each group again, through another descriptor."""


TRUSTING = Checks()


class Pack:
    """The pack that is being written."""

    __slots__ = ("failed", "fd", "full", "id", "length", "offset", "salt", "synced", "written")

    def __init__(self, pack_id: int, fd: int, salt: int) -> None:
        self.id = pack_id
        self.fd = fd
        self.salt = salt
        self.offset = pack_format.PACK_HEADER
        self.written = self.offset
        """Where the last whole group that was written ends."""
        self.length = self.offset
        """Where the file ends, when it was made longer."""
        self.synced = self.offset
        """Where the last group that was synced ends: what the pack is sealed at."""
        self.full = False
        """A write failed: nothing more is written here."""
        self.failed = False
        """A sync failed: nothing more becomes durable here."""


Written = tuple[Pack | None, list[Append], int]
"""A group for the syncing thread, and where it ends. Without entries the pack is to be sealed, without a pack all."""


class PackWriter:
    """`path` gives the file of a pack; `synced` syncs the directory of one, and is None for a relaxed store."""

    def __init__(
        self,
        book: PackBook,
        path: Callable[[int], str],
        sync_entry: Callable[[int], None] | None,
        size: int,
        at: Callable[[str], None],
        checks: Checks = TRUSTING,
    ) -> None:
        self._checks = checks
        self._book = book
        self._path = path
        self._sync_entry = sync_entry
        self._size = size
        self._at = at
        self._queue: queue.SimpleQueue[Append | None] = queue.SimpleQueue()
        self._written: queue.SimpleQueue[Written] = queue.SimpleQueue()
        self._pack: Pack | None = None
        self._closed = False
        self._given_up: DriverError | None = None
        self._lock = threading.Lock()
        self._under_way: set[Append] = set()
        """Taken from the queue, and not told of their end yet. Guarded by the lock, as is `_given_up`."""
        self._writing: object = None
        self._syncing: object = None
        """What each thread does, a new object for each group."""
        self._spare = 0
        """A pack that is in the book and was not made, because the mount refused."""
        self.troubles = 0
        """Groups that failed by the mount."""
        self._writer = threading.Thread(target=self._write, name="sluice-pack", daemon=True)
        self._syncer = threading.Thread(target=self._sync, name="sluice-pack-sync", daemon=True)
        self._writer.start()
        self._syncer.start()

    def append(self, entry: Append) -> None:
        """See `Driver.append`."""
        if self._closed:
            raise StoreFailed("the store is closed")
        self._queue.put(entry)

    def end(self) -> None:
        """Write what is queued and seal the pack, and take no more. Does not wait."""
        self._closed = True
        self._queue.put(None)

    def join(self, until: float) -> None:
        """Wait for that, until `time.monotonic()` says so at most."""
        for thread in (self._writer, self._syncer):
            thread.join(max(0.0, until - monotonic()))

    @property
    def load(self) -> int:
        """Entries whose end is not told yet, about."""
        return self._queue.qsize() + len(self._under_way)

    def running(self) -> list[object]:
        """The groups that are being written and synced now."""
        return [group for group in (self._writing, self._syncing) if group is not None]

    def give_up(self, error: DriverError) -> None:
        """Fail whatever is not synced yet, whether a thread hangs with it or not, and take no more. Never waits."""
        self._closed = True
        with self._lock:
            self._given_up = error
            entries = list(self._under_way)
            self._under_way.clear()
        while True:
            try:
                entry = self._queue.get_nowait()
            except queue.Empty:
                break
            if entry is not None:
                entries.append(entry)
        self._queue.put(None)
        fail(entries, error)

    def _begin(self, group: list[Append]) -> bool:
        with self._lock:
            if self._given_up is None:
                self._under_way.update(group)
                return True
        fail(group, StoreFailed("the store was given up"))
        return False

    def _is_ours(self, entries: list[Append]) -> bool:
        """Whether their end is still to be told, by whoever asks."""
        with self._lock:
            self._under_way.difference_update(entries)
            return self._given_up is None

    def _finish(self, entries: list[Append]) -> None:
        if self._is_ours(entries):
            _tell(entries)

    def _fail(self, entries: list[Append], error: Exception) -> None:
        if isinstance(error, DriverError):
            self.troubles += 1
        if self._is_ours(entries):
            fail(entries, error)

    # the writing thread
    def _write(self) -> None:
        _let_others_finish()
        while (first := self._queue.get()) is not None:
            group = self._take(first)
            if self._begin(group):
                self._writing = object()
                self._write_group(group)
                self._writing = None
        self._retire()
        self._written.put((None, [], 0))

    def _take(self, first: Append) -> list[Append]:
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

    def _write_group(self, group: list[Append]) -> None:
        try:
            pack = self._current(sum(len(entry.piece) for entry in group))
        except Exception as error:
            self._fail(group, error)
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
        except DriverError as error:
            pack.full = True
            self._fail(entries, error)
            return
        pack.written = pack.offset
        spent = perf_counter() - started
        for entry in entries:
            entry.timings["write"] = spent
        self._at("pack.written")
        if self._sync_entry is None:
            pack.synced = pack.written
            self._finish(entries)
        else:
            self._written.put((pack, entries, pack.written))

    def _records(self, pack: Pack, group: list[Append]) -> tuple[list[Append], list[Buffer]]:
        """The group as buffers for the disk, without those whose body is not what was promised."""
        entries: list[Append] = []
        buffers: list[Buffer] = []
        for entry in group:
            try:
                body = entry.piece
                entry.source.digest(body)
                entry.source.verify()
                claim = entry.claim()
            except Exception as error:
                self._fail([entry], error)
                continue
            offset = pack.offset
            head = pack_format.record_head(pack_format.BLOB, entry.blob_id, offset, claim, body, pack.salt)
            total = len(head) + len(claim) + len(body)
            entry.locator = f"p:{pack.id:x}.{offset:x}.{total:x}.{entry.blob_id:x}"
            pack.offset = offset + total
            buffers += (head + claim, body)
            entries.append(entry)
        return entries, buffers

    def _current(self, size: int) -> Pack:
        pack = self._pack
        if pack is not None and (pack.failed or pack.full or pack.written + size > self._size):
            self._retire()
            pack = None
        if pack is None:
            pack = self._pack = self._open()
        pack.offset = pack.written
        return pack

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
                write_all(fd, pack_format.pack_header(pack_id, salt))
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
        """Hand the pack to the syncing thread, which seals it behind its last group."""
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
            # whatever was written to the pack by now is covered by one sync
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

    def _sync_group(self, pack: Pack, entries: list[Append], end: int) -> None:
        started = perf_counter()
        try:
            if pack.failed:
                raise StoreFailed("an earlier sync of the pack failed")
            with map_errors():
                os.fdatasync(pack.fd)
                self._look_again(pack, entries, end)
            if self._given_up is not None:  # nobody was told of these: the pack ends before them
                raise self._given_up
        except DriverError as error:
            pack.failed = True
            self._fail(entries, error)
            return
        pack.synced = end
        self._at("pack.synced")
        spent = perf_counter() - started
        for entry in entries:
            entry.timings["sync"] = spent
        self._finish(entries)

    def _look_again(self, pack: Pack, entries: list[Append], end: int) -> None:
        """On a mount that is not trusted: whether a group is there. Raises StoreFailed, BlobDamaged."""
        if self._checks.size and os.stat(self._path(pack.id)).st_size < end:
            raise StoreFailed(f"a pack of {end} bytes is shorter")
        if not self._checks.read_back:
            return
        fd = os.open(self._path(pack.id), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            for entry in entries:
                place = place_of(entry.locator)
                whole = memoryview(read_exactly(fd, place.offset, place.total))
                pack_format.body_of(whole, place.offset, place.blob_id, pack.salt)
        finally:
            os.close(fd)

    def _seal(self, pack: Pack) -> None:
        _close_quietly(pack.fd)  # every group was synced, or failed
        try:
            self._book.seal_pack(pack.id, pack.synced)
        except Exception:  # noqa: S110 - the sweep seals it
            pass


def _let_others_finish() -> None:
    """Have the kernel not stop another thread to run this one as soon as it has work (sched(7), SCHED_BATCH).

    On a core that they share it then finds more to write in one group.
    """
    if hasattr(os, "sched_setscheduler"):
        try:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        except OSError:
            pass  # forbidden by a sandbox


def _close_quietly(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        pass


def _tell(entries: list[Append]) -> None:
    for entry in entries:
        try:
            entry.done(entry)
        except Exception:
            logger.exception("packs: whoever waited for a record failed")


def fail(entries: list[Append], error: Exception) -> None:
    """Tell those who wait for these records that there are none."""
    for entry in entries:
        entry.error = error
        entry.locator = ""
    _tell(entries)
