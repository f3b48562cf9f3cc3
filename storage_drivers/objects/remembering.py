"""A driver that keeps records of packs in memory: what mounts want where each read is a round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial

from storage_drivers.base import FileSlice
from storage_drivers.errors import DriverError
from storage_drivers.objects.driver import ObjectsDriver
from storage_drivers.packs.memory import GROUP, Memory, Read
from storage_drivers.packs.reader import PREFIX as PACKED
from storage_drivers.packs.reader import Place, place_of

MOST_AHEAD = 8 * GROUP
"""Windows on their way at once, beside what is kept."""


class RememberingDriver(ObjectsDriver):
    """`read` of a record that is not in memory reads it with what lies around it, for those who come next."""

    def read_now(self, locator: str, offset: int, length: int) -> bytes | None:
        """The bytes of a record that is in memory."""
        memory = self._memory
        if memory is None or not locator.startswith(PACKED):
            return super().read_now(locator, offset, length)
        body = memory.body(locator)
        return bytes(body[offset : offset + length]) if body is not None and offset + length <= len(body) else None

    async def read(self, locator: str, offset: int, length: int) -> FileSlice | bytes:
        """By way of memory; what is not good there is read from the mount as it is without."""
        memory = self._memory
        if memory is not None and locator.startswith(PACKED):
            body = memory.body(locator)
            if body is None:
                body = await self._fetch(memory, locator)
            if body is not None and offset + length <= len(body):
                return bytes(body[offset : offset + length])
        return await super().read(locator, offset, length)

    async def _fetch(self, memory: Memory, locator: str) -> memoryview | None:
        """Read the windows of a record if that is worth it, else the record; None when that did not do."""
        place = place_of(locator)
        if locator not in memory.coming:
            if not memory.awaited(place):
                self._read_around(memory, place)
            if awaited := memory.awaited(place):
                await asyncio.wait(awaited)
                body = memory.body(locator)
                if body is not None:
                    return body
        reading = memory.coming.get(locator)
        if reading is None:
            reading = self._begin_stretch(
                memory, (locator,), place, lambda read: memory.keep_record(locator, place, read)
            )
        await asyncio.wait((reading,))
        return memory.body(locator)

    def _read_around(self, memory: Memory, place: Place) -> None:
        windows = memory.around(place)
        if windows and len(memory.coming) + len(windows) <= MOST_AHEAD and not self._threads.waiting():
            stretch = Place(place.pack, windows[0] * memory.window, len(windows) * memory.window, 0)
            keys = [(place.pack, number) for number in windows]
            self._begin_stretch(memory, keys, stretch, partial(memory.keep_windows, place.pack, windows))

    def _begin_stretch(
        self, memory: Memory, keys: Iterable[Hashable], stretch: Place, keep: Callable[[Read], None]
    ) -> asyncio.Future[Read]:
        """Begin to read bytes of a pack; they are `coming` under these keys until they are kept."""
        reading = self._hop(self._packs.stretch, stretch.pack, stretch.offset, stretch.total)
        memory.coming.update(dict.fromkeys(keys, reading))

        def came(reading: asyncio.Future[Read]) -> None:
            for key in keys:
                del memory.coming[key]
            if not reading.cancelled() and reading.exception() is None:  # else whoever wanted it reads, and is told why
                keep(reading.result())

        reading.add_done_callback(came)
        return reading

    async def discard_many(self, locators: Sequence[str]) -> None:
        """Nor are they kept in memory."""
        await super().discard_many(locators)
        if self._memory is not None:
            self._memory.forget_records(locator for locator in locators if locator.startswith(PACKED))
            if gone := {pack for locator in locators if (pack := self.whole_pack(locator))}:
                self._memory.forget(gone)

    async def forget_unlinked(self) -> None:
        """Nor keep anything of them in memory."""
        if self._memory is None:
            await super().forget_unlinked()
        else:
            self._memory.forget(await self._hop(self._packs.forget_unlinked, self._memory.packs()))

    def give_up(self, error: DriverError) -> None:
        """Fail what is under way."""
        super().give_up(error)
        if self._memory is not None:
            self._memory.clear()
