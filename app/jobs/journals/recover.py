"""Recovery of an older index with the journal records beyond it.

It is a rebuild that begins with the rows of the older index. Of the store it reads only names, the packs that were
written since, and the files that the older index does not reference. On a large or slow store that takes minutes, not
hours. Of a store to which a bucket was moving it reads all packs, and it reads everything when it misses a blob.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sluice_s3.app.encryption.keyring import parse_ring_number
from sluice_s3.app.index.journals.rows import KEYRING
from sluice_s3.app.index.tools import copy
from sluice_s3.app.index.tools.recover import BlobLocation, IndexRecovery
from sluice_s3.app.jobs.journals.rebuild import MOVED_COLUMN, SOURCE_COLUMN, STORE_COLUMN, Progress, Rebuild, Settled
from sluice_s3.app.jobs.journals.rebuild_source import Journals, Report
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.offline import OfflineStore, locate, open_offline_stores
from sluice_s3.storage_drivers.objects.offline_reader import Blob, Damaged

BASE_PREFIX = "recover-"
"""Prefix of the directory with the copy of the older index."""


class Recovery(Rebuild):
    """A new index at `index_path` from all stores and `base`, an older state.

    `base` is only read. With `index_url` the new index is built in Postgres.
    """

    _index: IndexRecovery

    def __init__(
        self,
        stores: Sequence[OfflineStore],
        base: Path,
        index_path: Path,
        index_url: str | None,
        *,
        progress: Progress,
    ) -> None:
        self._base = base
        self._index_url = index_url
        super().__init__(stores, index_path, progress=progress)
        self._position = {name: self._index.position(name) for name in self._stores}
        self._sealed = self._index.sealed_packs()

    def _open_new(self, path: Path) -> IndexRecovery:
        return IndexRecovery(path, self._base, _locate)

    def _open_journals(self, report: Report) -> dict[str, Journals]:
        return {
            name: Journals(store, report, self._position[name][0], self._index.journals(name))
            for name, store in self._stores.items()
        }

    def _choose_settings(self, journals: dict[str, Journals]) -> dict[str, Any]:
        """Return the settings of the base, or newer ones from the journals."""
        base = self._index.settings()
        newer = [found.settings for name, found in journals.items() if found.settings[0] > self._position[name][1]]
        settings = max(newer, key=lambda entry: entry[0])[1] if newer else base
        ring = max((base[KEYRING], *(found.keyring for found in journals.values())), key=parse_ring_number)
        return {**settings, KEYRING: ring}

    def _seed(self, journals: dict[str, Journals], settings: dict[str, Any]) -> None:
        for name, store in self._stores.items():
            for pack in store.packs():
                self._index.add_pack(pack, *store.pack_size(pack), name)
            self._index.add_present(store.file_ids(), name)
        self._index.seed(list(self._find_replaced_buckets(journals, settings)))
        self._replay_removals(self._index.removals())

    def _find_replaced_buckets(self, journals: dict[str, Journals], settings: dict[str, Any]) -> Iterator[int]:
        """Yield buckets that a snapshot after the base describes completely: other rows are deleted."""
        for row in settings.get("buckets", ()):
            for name, found in journals.items():
                if not found.has_new_snapshot or row[0] in self._journaled_elsewhere[name]:
                    continue
                moved = row[MOVED_COLUMN] if len(row) > MOVED_COLUMN else 0
                source = row[SOURCE_COLUMN] if len(row) > SOURCE_COLUMN else ""
                if name == source or (name == row[STORE_COLUMN] and found.snapshot > moved):
                    yield row[0]

    def _packs_to_read(self, store: OfflineStore) -> list[int]:
        if store.name in self._index.stores_with_arrivals():  # records of rows that the base has at their old places
            return store.packs()
        return [pack for pack in store.packs() if pack not in self._sealed]

    def _files_to_read(self, store: OfflineStore) -> Iterator[Blob | Damaged]:
        return map(store.file, self._index.unknown(store.name))

    def _read_rest(self, report: Report, settled: dict[str, Settled]) -> None:
        """Read all packs and files when a row names a blob that was not found.

        A pack may be sealed before the last rows of its records are committed, and a row may take a copy that the older
        index has for another row.
        """
        if not self._index.names_absent():
            return
        for name, store in self._stores.items():
            read = set(self._packs_to_read(store))
            self._read_packs(store, [pack for pack in store.packs() if pack not in read], report, settled[name])
            self._read_files(map(store.file, self._index.trusted_files(name)), report, settled[name])
        self._follow_moves()

    def _last_drawn(self) -> int:
        return self._index.sequence()

    def replace_base(self) -> Path | None:
        """Replace the older index; return the path it was moved to.

        On Postgres it is one transaction, and the result is None.
        """
        if self._index_url is None:
            return self.install(replace=True)
        self._index.close()
        for store in self._stores.values():  # first: an older index is refused from now on
            store.raise_generation()
        asyncio.run(_replace(self._index_url, self._work / "sluice.db"))
        return None


@contextmanager
def open_recovery(settings: Settings, progress: Progress = lambda *_: None) -> Iterator[Recovery]:
    """Open a recovery of the index of these settings; its base is a copy.

    No server may run. Raises DomainError, DriverError, OSError, apsw.Error.
    """
    index_path = settings.index_path if settings.index_url is None else settings.run_dir / "recover" / "sluice.db"
    index_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=BASE_PREFIX, dir=index_path.parent) as directory:
        base = Path(directory) / "sluice.db"
        if settings.index_url is None:
            copy.copy_file(settings.index_path, base)
        else:
            asyncio.run(_copy_out(settings.index_url, base))
        stores = open_offline_stores(settings)
        try:
            target = index_path, settings.index_url
            recovery = Recovery(stores, base, *target, progress=progress)
        except BaseException:
            for store in stores:
                store.close()
            raise
        with recovery:
            yield recovery


async def _copy_out(url: str, base: Path) -> None:
    async with copy.open_endpoint(url) as source, copy.open_endpoint(f"sqlite:///{base}", write=True) as target:
        await copy.copy(source, target, lambda *_: None)


async def _replace(url: str, path: Path) -> None:
    async with copy.open_endpoint(f"sqlite:///{path}") as source, copy.open_endpoint(url, write=True) as target:
        await copy.replace(source, target, lambda *_: None)


def _locate(locator: str) -> BlobLocation | None:
    found = locate(locator)
    return None if found is None else BlobLocation(*found)
