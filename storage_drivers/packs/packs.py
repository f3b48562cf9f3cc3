"""The packs of one store: who writes them, who reads them, what is in them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from operator import attrgetter
from time import monotonic

from storage_drivers.base import Append, ClaimedRecord, Durability, PackBook
from storage_drivers.errors import BlobDamaged, BlobMissing, DriverError, StoreFailed, map_errors
from storage_drivers.packs import holes, moves, pack_format
from storage_drivers.packs.reader import OPEN, PREFIX, PackReader, place_of
from storage_drivers.packs.writer import TRUSTING, Checks, PackWriter, fail

SIZE = 256 << 20
"""Bytes at which a pack is sealed and the next one begun."""
SHARE = 64 << 10
"""Bytes of one tick of the loop that one writer is given, where there are others."""
CLOSE_TIMEOUT = 10.0
"""Seconds that a closing store waits for its packs; what a stuck mount holds back is the sweep's."""


class Packs:
    """`path` names a pack's file, `sync_entry` makes its directory entry durable (as a store that is not relaxed does).

    What is moved from one pack to another goes into packs of its own: it has lived for a while and is likely to go on,
    other than most of what is new; and no PUT waits behind it.
    """

    def __init__(
        self,
        path: Callable[[int], str],
        sync_entry: Callable[[int], None],
        durability: Durability,
        size: int,
        at: Callable[[str], None],
        checks: Checks = TRUSTING,
        streams: int = 1,
    ) -> None:
        self._checks = checks
        self._streams = streams
        self._path = path
        self._sync_entry = sync_entry
        self._durability = durability
        self._size = size
        self._at = at
        self._book: PackBook | None = None
        self._appends = False
        self._lanes: list[PackWriter] = []
        """Writers of new bodies, each of a pack of its own: at most `streams`, made when all others are busy."""
        self._mover: PackWriter | None = None
        self._moving = threading.Lock()
        self.page = 0
        """Bytes of the pages that can be punched out of a pack on this mount, 0 when none can."""
        self._fresh: list[Append] = []
        self._closing = False
        self._reader = PackReader(path)
        self.read_now = self._reader.read_now
        self.stretch = self._reader.stretch
        self.forget = self._reader.forget
        self.forget_unlinked = self._reader.forget_unlinked

    def open(self, book: PackBook, *, appends: bool) -> None:
        """Be a writer from now on, of new bodies too if `appends`."""
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
        """The groups that are being written or synced."""
        return [group for writer in self._writers() for group in writer.running()]

    @property
    def troubles(self) -> int:
        """Groups that failed."""
        return sum(writer.troubles for writer in self._writers())

    def give_up(self, error: DriverError) -> None:
        """Fail what is under way, and take no more. Never waits."""
        self._closing = True
        fresh, self._fresh = self._fresh, []
        for writer in self._writers():
            writer.give_up(error)
        fail(fresh, error)

    def forget_all(self) -> None:
        """Close what is read."""
        self._reader.close()

    def _writers(self) -> list[PackWriter]:
        lanes = list(self._lanes)
        return lanes if self._mover is None else [*lanes, self._mover]

    def append(self, entry: Append) -> None:
        """See `Driver.append`."""
        if not self._appends or self._closing:
            raise StoreFailed("the store is closed")
        # those of one tick of the loop are queued together: the thread, once woken, finds a group
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
        lane, room = self._lane(), SHARE
        for entry in entries:
            if room <= 0:
                lane, room = self._lane(), SHARE
            lane.append(entry)
            room -= len(entry.piece)

    def _lane(self) -> PackWriter:
        """A writer that has nothing to do, else a new one, else the one with the least."""
        lanes = self._lanes
        if len(lanes) == 1 == self._streams:
            return lanes[0]
        for lane in lanes:
            if not lane.load:
                return lane
        if len(lanes) == self._streams:
            return min(lanes, key=attrgetter("load"))
        assert self._book is not None
        sync_entry = self._sync_entry if self._durability is Durability.FULL else None
        lanes.append(PackWriter(self._book, self._path, sync_entry, self._size, self._at, self._checks))
        return lanes[-1]

    def read(self, locator: str, offset: int, length: int) -> bytes:
        """Verified bytes of a record; blocks. Raises BlobMissing, BlobDamaged."""
        return self._reader.read(place_of(locator), locator, offset, length)

    def claimed(self, pack_id: int, offset: int, limit: int) -> tuple[list[ClaimedRecord], int]:
        """See `Driver.claimed`. Blocks."""
        return moves.claimed_records(self._path(pack_id), pack_id, offset, limit)

    def move(self, locators: Sequence[str]) -> dict[str, str]:
        """See `Driver.move`. Blocks. Synced also on a relaxed store: what is moved was safe long ago."""
        with self._moving:
            if self._mover is None:
                if self._book is None:
                    raise StoreFailed("the store is closed")
                self._mover = PackWriter(self._book, self._path, self._sync_entry, self._size, self._at, self._checks)
            mover = self._mover
        return moves.move(locators, self._path, mover.append)

    def punch(self, locators: Sequence[str]) -> int:
        """Give back whole pages of dead records where the mount can; returns their bytes. Blocks."""
        return holes.punch_dead(map(place_of, locators), self._path, self.page) if self.page else 0

    def records(self, pack_id: int) -> list[tuple[str, int]]:
        """Locators of all blobs in a pack, live or dead, and the bytes of their bodies; blocks."""
        try:
            with map_errors(committed=f"pack {pack_id:x}"):
                fd = os.open(self._path(pack_id), OPEN)
                try:
                    found = list(pack_format.walk(fd, pack_format.read_salt(fd, pack_id)))
                finally:
                    os.close(fd)
        except (BlobMissing, BlobDamaged):  # discarded meanwhile, or torn before its first record
            return []
        return [
            (f"{PREFIX}{pack_id:x}.{record.offset:x}.{record.total:x}.{record.blob_id:x}", record.body)
            for record in found
            if record.kind == pack_format.BLOB
        ]
