"""The packs of one store: writers, readers and contents."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from operator import attrgetter
from time import monotonic

from sluice_s3.storage_drivers.base import AppendRequest, Durability, PackRegistry, RecordInfo
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, DriverError, StoreFailed, map_errors
from sluice_s3.storage_drivers.packs import format, holes, relocation
from sluice_s3.storage_drivers.packs.outcomes import fail
from sluice_s3.storage_drivers.packs.reader import OPEN, PREFIX, PackReader, parse_locator
from sluice_s3.storage_drivers.packs.writer import NO_CHECKS, PackWriter, WriteChecks

SIZE = 256 << 20
"""Bytes at which a pack is sealed and the next one begun."""
TICK_BYTES_PER_WRITER = 64 << 10
"""Bytes that one writer gets in one tick of the loop, when there are several."""
CLOSE_TIMEOUT = 10.0
"""Seconds that a closing store waits for its packs; the sweep handles what a stuck mount holds."""


class PackManager:
    """The packs of one store.

    `path` returns a pack's file; `sync_entry` makes its directory entry durable (on a store that is not relaxed). Moved
    records go into packs of their own: they are likely to live on, unlike most new ones, and no PUT waits behind them.
    With `inline`, a store that is not durable writes small groups on the event loop: see `PackWriter.try_write`.
    """

    def __init__(
        self,
        path: Callable[[int], str],
        sync_entry: Callable[[int], None],
        durability: Durability,
        size: int,
        at: Callable[[str], None],
        checks: WriteChecks = NO_CHECKS,
        streams: int = 1,
        *,
        inline: bool = False,
    ) -> None:
        self.inline = inline and durability is Durability.RELAXED and not checks.read_back
        """Whether small groups are written on the event loop."""
        self._checks = checks
        self._streams = streams
        self._path = path
        self._sync_entry = sync_entry
        self._durability = durability
        self._size = size
        self._at = at
        self._book: PackRegistry | None = None
        self._appends = False
        self._lanes: list[PackWriter] = []
        """Writers of new bodies, each with its own pack: at most `streams`, created when all others are busy."""
        self._mover: PackWriter | None = None
        self._moving = threading.Lock()
        self.page = 0
        """Page size for punching holes into packs on this mount, 0 when it cannot."""
        self._fresh: list[AppendRequest] = []
        self._closing = False
        self._reader = PackReader(path)
        self.try_read = self._reader.try_read
        self.stretch = self._reader.stretch
        self.forget = self._reader.forget
        self.close_unlinked = self._reader.close_unlinked

    def open(self, book: PackRegistry, *, appends: bool) -> None:
        """Become a writer, of new bodies too if `appends`."""
        self._book = book
        self._closing = False
        self._appends = appends

    async def close(self) -> None:
        """Write what is queued, seal what is written, close what is read."""
        self._closing = True
        self._queue_fresh()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._moving:
            self._book = None
            writers = self._writers()
            self._lanes, self._mover = [], None
        until = monotonic() + CLOSE_TIMEOUT
        for writer in writers:
            writer.end()
        for writer in writers:
            writer.join(until)
        self._reader.close()

    def running(self) -> list[object]:
        """Return the groups that are being written or synced."""
        return [group for writer in self._writers() for group in writer.running()]

    @property
    def troubles(self) -> int:
        """The number of failed groups."""
        return sum(writer.troubles for writer in self._writers())

    def give_up(self, error: DriverError) -> None:
        """Fail what is under way, and refuse more. Never waits."""
        self._closing = True
        fresh, self._fresh = self._fresh, []
        for writer in self._writers():
            writer.give_up(error)
        fail(fresh, error)

    def forget_all(self) -> None:
        """Close all packs that are open for reading."""
        self._reader.close()

    def _writers(self) -> list[PackWriter]:
        lanes = list(self._lanes)
        return lanes if self._mover is None else [*lanes, self._mover]

    def append(self, entry: AppendRequest) -> None:
        """See `Driver.append`."""
        if not self._appends or self._closing:
            raise StoreFailed("the store is closed")
        # The entries of one loop tick are queued together, so that the thread finds a group when it wakes.
        if not self._fresh:
            asyncio.get_running_loop().call_soon(self._queue_fresh)
        self._fresh.append(entry)

    def _queue_fresh(self) -> None:
        entries, self._fresh = self._fresh, []
        if not entries:
            return
        if self._book is None:
            fail(entries, StoreFailed("the store is closed"))
            return
        queued = 0
        try:
            lane, room = self._lane(), TICK_BYTES_PER_WRITER
            if self.inline and lane.try_write(entries):
                return
            for entry in entries:
                if room <= 0:
                    lane, room = self._lane(), TICK_BYTES_PER_WRITER
                lane.append(entry)
                queued += 1
                room -= len(entry.piece)
        except (RuntimeError, MemoryError) as error:  # no thread can be started: nothing else would answer them
            fail(entries[queued:], error)

    def _lane(self) -> PackWriter:
        """Return an idle writer, else a new one, else the one with the shortest queue."""
        lanes = self._lanes
        if len(lanes) == 1 == self._streams:
            return lanes[0]
        for lane in lanes:
            if not lane.load:
                return lane
        if len(lanes) < self._streams:
            assert self._book is not None
            sync_entry = self._sync_entry if self._durability is Durability.FULL else None
            try:
                lanes.append(PackWriter(self._book, self._path, sync_entry, self._size, self._at, self._checks))
                return lanes[-1]
            except (RuntimeError, MemoryError):  # no thread can be started
                if not lanes:
                    raise
        return min(lanes, key=attrgetter("load"))

    def read(self, locator: str, offset: int, length: int) -> bytes:
        """Return verified bytes of a record; blocks. Raises BlobMissing, BlobDamaged."""
        return self._reader.read(parse_locator(locator), locator, offset, length)

    def list_records(self, pack_id: int, offset: int, limit: int) -> tuple[list[RecordInfo], int]:
        """See `Driver.list_records`. Blocks."""
        return relocation.list_records(self._path(pack_id), pack_id, offset, limit)

    def move(self, locators: Sequence[str]) -> dict[str, str]:
        """See `Driver.move`. Blocks.

        It syncs also on a relaxed store: moved records have been safe for long.
        """
        with self._moving:
            if self._mover is None:
                if self._book is None:
                    raise StoreFailed("the store is closed")
                self._mover = PackWriter(self._book, self._path, self._sync_entry, self._size, self._at, self._checks)
            mover = self._mover
        return relocation.move_records(locators, self._path, mover.append)

    def punch(self, locators: Sequence[str]) -> int:
        """Free whole pages of dead records if the mount can; return their bytes. Blocks."""
        return holes.punch_dead(map(parse_locator, locators), self._path, self.page) if self.page else 0

    def records(self, pack_id: int) -> list[tuple[str, int]]:
        """Return locators and body sizes of all blobs in a pack, live or dead; blocks."""
        try:
            with map_errors(committed=f"pack {pack_id:x}"):
                fd = os.open(self._path(pack_id), OPEN)
                try:
                    found = list(format.walk(fd, format.read_salt(fd, pack_id)))
                finally:
                    os.close(fd)
        except (BlobMissing, BlobDamaged):  # discarded meanwhile, or torn before its first record
            return []
        return [
            (f"{PREFIX}{pack_id:x}.{record.offset:x}.{record.total:x}.{record.blob_id:x}", record.body)
            for record in found
            if record.kind == format.BLOB
        ]
