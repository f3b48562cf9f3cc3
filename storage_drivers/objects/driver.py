"""A driver of the layout *objects*: a large blob is a file of its own, ROOT/data/<aa>/<id>, or several, written once.

Small ones are records of packs, ROOT/data/<aa>/<id>.pack, which are only ever appended to. It asks of the mount:
create-exclusive, write, fsync of files and directories, read, unlink, and 256 directories made once. What more it uses
is the choice of its recipe, where the mount was seen to do it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from storage_drivers import files, identity, looking
from storage_drivers.base import Append, Capabilities, Durability, PackBook, Usage
from storage_drivers.blobs.reader import BlobReader
from storage_drivers.errors import DriverError, map_errors
from storage_drivers.names import DIRECTORIES, FILE, LOCATOR, Names, number_of
from storage_drivers.objects.discarding import Discarding
from storage_drivers.objects.getting import Getting
from storage_drivers.objects.journals import Journals
from storage_drivers.objects.opening import Opening
from storage_drivers.objects.pack_upkeep import PackUpkeep, packs_in
from storage_drivers.objects.putting import Putting
from storage_drivers.objects.read_ahead import ReadAhead
from storage_drivers.objects.recipe import Recipe
from storage_drivers.objects.upkeep import Upkeep
from storage_drivers.packs import pack_format, packs
from storage_drivers.packs.memory import Memory
from storage_drivers.packs.reader import PREFIX as PACKED
from storage_drivers.packs.reader import place_of
from storage_drivers.packs.writer import Checks
from storage_drivers.probing.probe import Probe, unfit, with_patience
from storage_drivers.probing.trials import Ability
from storage_drivers.threads import Threads


def nowhere(_: str) -> None:
    """The crash hook of a driver that is not under test."""


class ObjectsDriver(Putting, Getting, Discarding, Upkeep, PackUpkeep):
    """One store on one mount. A driver is a subclass with a recipe.

    `threads` bounds the blocking calls under way. `create` False refuses a root without identity: give it when the
    index knows a store already, for then such a root is an unmounted path. `append` takes bodies of up to
    `pack_threshold` bytes, into packs of about `pack_size` bytes, and keeps up to `read_cache` bytes of what is read of
    them in memory where its recipe says so. `at` is called with the name of every step of put and
    discard once it is done (crash tests).
    """

    recipe: Recipe

    def __init__(
        self,
        root: Path,
        *,
        durability: Durability = Durability.FULL,
        threads: int = 32,
        create: bool = True,
        pack_threshold: int = 0,
        pack_size: int = packs.SIZE,
        at: Callable[[str], None] = nowhere,
        read_back: bool = False,
        read_cache: int = 0,
    ) -> None:
        recipe = self._recipe = self.recipe
        self.capabilities = Capabilities(
            durability=durability,
            descriptors=recipe.descriptors,
            nowait=recipe.now,
            pack_overhead=pack_format.PACK_HEADER,
        )
        self.identity: identity.Identity | None = None
        self.probe: Probe | None = None
        """What the mount did when the store started."""
        self._root = root
        self._names = Names(root)
        self._create = create
        self._at = at
        self._nowait = recipe.now
        self._descriptors = recipe.descriptors
        self._read_back = read_back
        self._held: int | None = None
        self._threads = Threads(threads)
        self._pack_threshold = pack_threshold
        self._files = BlobReader()
        self._ahead = ReadAhead(self._begin_read)
        sync_entry = self._sync_entry if durability is Durability.FULL else None
        self._journals = Journals(self._names.journal, sync_entry)
        checks = Checks(recipe.pack_ahead, recipe.check_size, read_back)
        self._packs = packs.Packs(self._names.pack, self._sync_entry, durability, pack_size, at, checks, recipe.streams)
        self._memory = Memory(read_cache, recipe.window) if read_cache and recipe.window else None
        self._syncs = [files.SharedSync(self._names.directory(low)) for low in range(DIRECTORIES)]

    # life
    async def start(self) -> None:
        """Make or check the store, and try its mount.

        Raises StoreFailed when the root holds another store, or blobs of none; StoreUnfit.
        """
        durability = self.capabilities.durability
        opening = Opening(self._root, create=self._create, durable=durability is Durability.FULL)
        self.identity, self._held, probe = await with_patience(opening.progress, opening.run)
        refused = unfit(probe, durability)
        if refused is not None:
            raise refused
        self.probe = probe
        self._nowait = self._recipe.now and probe.may(Ability.NOWAIT)
        self._descriptors = self._recipe.descriptors and probe.may(Ability.SENDFILE)
        self._packs.page = probe.hole_page
        self.capabilities = replace(self.capabilities, nowait=self._nowait, descriptors=self._descriptors)

    async def close(self) -> None:
        """Take no more calls. Threads end after those queued; not waited for, so that a stuck mount stops no stop."""
        await self.close_packs()
        self._threads.shutdown()
        held, self._held = self._held, None
        if held is not None:
            os.close(held)

    # when the mount does not answer
    def look(self, known: identity.Identity, *, write: bool) -> None:
        """Look whether the store of this identity is there; see `Driver.look`."""
        looking.look(self._root, known, write=write)

    def running(self) -> list[object]:
        """Blocking calls that run now."""
        return [*self._threads.running(), *self._packs.running()]

    @property
    def troubles(self) -> int:
        """Calls that failed by the mount."""
        return self._threads.troubles + self._packs.troubles

    @property
    def held(self) -> int:
        """Bytes of packs that are kept in memory."""
        return 0 if self._memory is None else self._memory.held

    def give_up(self, error: DriverError) -> None:
        """Fail what is under way."""
        self._threads.give_up(error)
        self._packs.give_up(error)
        threading.Thread(target=self._let_go, name="store-let-go", daemon=True).start()

    def _let_go(self) -> None:
        """Close what is kept open, so that the mount can be taken away. May hang."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)
        self._packs.forget_all()

    # packs
    def open_packs(self, book: PackBook) -> None:
        """Write packs from now on, unless the threshold is 0."""
        self._packs.open(book, appends=self._pack_threshold > 0)
        self.capabilities = replace(self.capabilities, append_limit=self._pack_threshold)

    async def close_packs(self) -> None:
        """Write what is queued and seal the packs."""
        self.capabilities = replace(self.capabilities, append_limit=0)
        await self._packs.close()

    def append(self, entry: Append) -> None:
        """Queue a small body for the next group."""
        self._packs.append(entry)

    def _sync_entry(self, pack_id: int) -> None:
        self._syncs[pack_id & 0xFF].sync()

    # the whole store
    async def walk(self) -> AsyncIterator[tuple[str, int]]:
        """Every blob's locator and size in bytes; files that are none of ours are passed over."""
        for low in range(DIRECTORIES):
            directory = self._names.directory(low)
            for blob in await self._hop(self._blobs_in, directory):
                yield blob
            for pack_id in await self._hop(packs_in, directory):
                for record in await self._hop(self._packs.records, pack_id):
                    yield record

    def _blobs_in(self, directory: str) -> list[tuple[str, int]]:
        with map_errors():
            names = [name for name in os.listdir(directory) if LOCATOR.fullmatch(FILE + name)]
            found = []
            for name in names:
                blob_id = int(name, 16)
                try:
                    found.append((FILE + name, self._files.size(partial(self._names.blob, blob_id), blob_id)))
                except FileNotFoundError:  # discarded meanwhile
                    continue
        return found

    async def usage(self) -> Usage:
        """Space left, as statvfs(3) gives it to an ordinary user."""
        return await self._hop(self._usage)

    def _usage(self) -> Usage:
        with map_errors():
            space = os.statvfs(self._root)
        return Usage(
            total=space.f_blocks * space.f_frsize,
            free=space.f_bavail * space.f_frsize,
            inodes=space.f_files,
            free_inodes=space.f_favail,
        )

    # names
    def locator(self, blob_id: int) -> str:
        """The locator of a blob of this id."""
        return f"{FILE}{blob_id:016x}"

    def blob_id(self, locator: str) -> int:
        """The id of the blob at a locator."""
        return place_of(locator).blob_id if locator.startswith(PACKED) else number_of(locator)

    def packed(self, locator: str) -> tuple[int, int] | None:
        """The pack that holds a blob and the bytes of its record there."""
        if not locator.startswith(PACKED):
            return None
        place = place_of(locator)
        return place.pack, place.total
