"""A driver that keeps records of packs in memory: what mounts want where each read is a round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from storage_drivers.base import FileSlice
from storage_drivers.errors import DriverError
from storage_drivers.objects.driver import ObjectsDriver
from storage_drivers.packs.memory import Memory, WindowKey
from storage_drivers.packs.reader import PREFIX as PACKED
from storage_drivers.packs.reader import place_of

LOADS = 32
"""Windows on their way at once, beside those that are kept; who comes then reads nothing but the record."""


class RememberingDriver(ObjectsDriver):
    """`read` of a record reads the windows that it lies in, which those who want them at the same time share."""

    def read_now(self, locator: str, offset: int, length: int) -> bytes | None:
        """The bytes of a record that is in memory."""
        memory = self._memory
        if memory is None or not locator.startswith(PACKED):
            return super().read_now(locator, offset, length)
        body = memory.body(locator)
        return bytes(body[offset : offset + length]) if body is not None and offset + length <= len(body) else None

    async def read(self, locator: str, offset: int, length: int) -> FileSlice | bytes:
        """From memory, once the windows are there; what is not good there is read from the mount as it ever was."""
        memory = self._memory
        if memory is not None and locator.startswith(PACKED):
            body = memory.body(locator)
            if body is None:
                await self._load(memory, locator)
                body = memory.body(locator)
            if body is not None and offset + length <= len(body):
                return bytes(body[offset : offset + length])
        return await super().read(locator, offset, length)

    async def _load(self, memory: Memory, locator: str) -> None:
        wanted = memory.missing(place_of(locator))
        loading = [found for key in wanted if (found := self._loading_of(memory, key)) is not None]
        if loading and len(loading) == len(wanted):
            await asyncio.wait(loading)

    def _loading_of(self, memory: Memory, key: WindowKey) -> asyncio.Future[tuple[bytes, int]] | None:
        loading = memory.loading.get(key)
        if loading is None and len(memory.loading) < LOADS:
            pack_id, number = key
            reading = self._submit(self._packs.stretch, pack_id, number * memory.window, memory.window)
            loading = memory.loading[key] = asyncio.wrap_future(reading)
            loading.add_done_callback(partial(_loaded, memory, key))
        return loading

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


def _loaded(memory: Memory, key: WindowKey, loading: asyncio.Future[tuple[bytes, int]]) -> None:
    del memory.loading[key]
    if not loading.cancelled() and loading.exception() is None:  # whoever wanted it reads the record, and is told why
        memory.keep(key, *loading.result())
