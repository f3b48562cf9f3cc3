"""A driver that caches pack records, for mounts where each read is a round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from functools import partial

from sluice_s3.storage_drivers.base import FileSlice
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.packs.reader import PREFIX as PACKED
from sluice_s3.storage_drivers.packs.reader import RecordLocation, parse_locator
from sluice_s3.storage_drivers.packs.record_cache import GROUP, Read, RecordCache, verified_body

MAX_READ_AHEAD = 8 * GROUP
"""Windows being read at once, beside the cached ones."""


class CachingDriver(ObjectsDriver):
    """A driver that caches records it reads, and their neighbours where those are read too."""

    def try_read(self, locator: str, offset: int, length: int) -> bytes | None:
        """Return the bytes of a cached record."""
        memory = self._memory
        if memory is None or not locator.startswith(PACKED):
            return super().try_read(locator, offset, length)
        body = memory.body(locator)
        return bytes(body[offset : offset + length]) if body is not None and offset + length <= len(body) else None

    async def read(self, locator: str, offset: int, length: int) -> FileSlice | bytes:
        """Read from the cache; fall back to the mount for what does not verify there."""
        memory = self._memory
        if memory is not None and locator.startswith(PACKED):
            body = memory.body(locator)
            if body is None:
                body = await self._fetch(memory, locator)
            if body is not None and offset + length <= len(body):
                return bytes(body[offset : offset + length])
        return await super().read(locator, offset, length)

    async def _fetch(self, memory: RecordCache, locator: str) -> memoryview | None:
        """Read a record, or its windows when records near it were read; None if that failed."""
        location = parse_locator(locator)
        if locator not in memory.pending:
            if not memory.find_pending(location):
                self._read_around(memory, location)
            if pending := memory.find_pending(location):
                await asyncio.wait(pending)
                body = memory.body(locator)
                if body is not None:
                    return body
        reading = memory.pending.get(locator)
        if reading is None:
            reading = self._begin_stretch(memory, (locator,), location, partial(memory.keep_record, location))
        await asyncio.wait((reading,))
        failed = reading.cancelled() or reading.exception() is not None
        return None if failed else verified_body(location, reading.result())

    def _read_around(self, memory: RecordCache, location: RecordLocation) -> None:
        windows = memory.around(location)
        if windows and len(memory.pending) + len(windows) <= MAX_READ_AHEAD and not self._threads.waiting():
            stretch = RecordLocation(location.pack, windows[0] * memory.window, len(windows) * memory.window, 0)
            keys = [(location.pack, number) for number in windows]
            self._begin_stretch(memory, keys, stretch, partial(memory.keep_windows, location.pack, windows))

    def _begin_stretch(
        self, memory: RecordCache, keys: Iterable[Hashable], stretch: RecordLocation, keep: Callable[[Read], None]
    ) -> asyncio.Future[Read]:
        """Begin to read bytes of a pack.

        They are `pending` under these keys until they are cached.
        """
        reading = self._run_in_thread(self._read_and_keep, stretch, keep)
        memory.pending.update(dict.fromkeys(keys, reading))

        def came(_: asyncio.Future[Read]) -> None:
            for key in keys:
                del memory.pending[key]

        reading.add_done_callback(came)
        return reading

    def _read_and_keep(self, stretch: RecordLocation, keep: Callable[[Read], None]) -> Read:
        read = Read(*self._packs.stretch(stretch.pack, stretch.offset, stretch.total))
        keep(read)
        return read
