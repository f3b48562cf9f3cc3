"""Reads of a store that no server uses, without an index. All calls block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

from sluice_s3.app.settings import Settings, StoreSettings
from sluice_s3.app.store.named_driver import locator_prefix, store_of_locator
from sluice_s3.storage_drivers import identity
from sluice_s3.storage_drivers.base import JournalRecord
from sluice_s3.storage_drivers.errors import BlobDamaged, StoreFailed
from sluice_s3.storage_drivers.fsspec.contents import RemoteContents
from sluice_s3.storage_drivers.fsspec.store import is_in_memory
from sluice_s3.storage_drivers.identity import Identity
from sluice_s3.storage_drivers.objects.offline_reader import Blob, Damaged, OfflineStoreReader


class OfflineStore:
    """One store, with its name in all locators, locked until `close`.

    Raises StoreFailed when it does not exist, and when it is in use and should not be.
    """

    def __init__(
        self,
        name: str,
        contents: OfflineStoreReader | RemoteContents,
        known: Identity | None,
        raise_generation: Callable[[], Identity],
        lock_fd: int | None = None,
    ) -> None:
        if known is None:
            raise StoreFailed(f"store {name}: there is no store here")
        self.name = name
        self.identity = known
        self.raise_generation = raise_generation
        self.journals = contents.journals
        self.journal: Callable[[int], Iterator[JournalRecord | None]] = contents.journal
        self.journal_size = contents.journal_size
        self.packs = contents.packs
        self.file_ids = contents.file_ids
        self.pack_size = contents.pack_size
        self._contents = contents
        self._prefix = locator_prefix(name)
        self._lock_fd = lock_fd

    def close(self) -> None:
        """Release the lock."""
        lock_fd, self._lock_fd = self._lock_fd, None
        if lock_fd is not None:
            os.close(lock_fd)

    def records(self, pack_id: int) -> Iterator[Blob]:
        """See `Contents.records`."""
        for blob in self._contents.records(pack_id):
            yield blob._replace(locator=self._prefix + blob.locator)

    def files(self) -> Iterator[Blob | Damaged]:
        """Yield the blobs that have a file of their own."""
        return map(self.file, self.file_ids())

    def file(self, blob_id: int) -> Blob | Damaged:
        """See `Contents.file`."""
        found = self._contents.file(blob_id)
        return found._replace(locator=self._prefix + found.locator)

    def intact(self, locator: str) -> bool:
        """See `Contents.intact`."""
        return self._contents.intact(locator.removeprefix(self._prefix))


def locate(locator: str) -> tuple[int, int, int] | None:
    """Return id, pack (0: none) and record bytes of the blob at a locator.

    The locator may be of any store. Returns None if it is not a blob's.
    """
    found = blob_id(locator)
    if found is None:
        return None
    bare = locator.removeprefix(locator_prefix(store_of_locator(locator)))
    if not bare.startswith("p:"):
        return found, 0, 0
    pack, _, record_bytes, _ = bare.removeprefix("p:").split(".")
    return found, int(pack, 16), int(record_bytes, 16)


def blob_id(locator: str) -> int | None:
    """Return the id of the blob at a locator of any store, or None."""
    bare = locator.removeprefix(locator_prefix(store_of_locator(locator)))
    try:
        return OfflineStoreReader.blob_id(bare) if bare[:2] in ("f:", "p:") else None
    except BlobDamaged:
        return None


def open_offline(name: str, settings: StoreSettings, *, alone: bool = True) -> OfflineStore:
    """Open the store of that name; unless `alone`, a server may use it meanwhile. Raises DriverError."""
    if settings.url is not None:
        return _open_remote(name, settings)
    root = settings.directory
    assert root is not None
    known = identity.read_identity(root)
    lock_fd = None if known is None else identity.lock_store(root, alone=alone)
    return OfflineStore(name, OfflineStoreReader(root), known, partial(identity.raise_generation, root), lock_fd)


def _open_remote(name: str, settings: StoreSettings) -> OfflineStore:
    from sluice_s3.storage_drivers.fsspec import contents as remote_contents
    from sluice_s3.storage_drivers.fsspec.filesystem import FsspecClient

    assert settings.url is not None
    if is_in_memory(settings.url):
        raise StoreFailed(f"store {name}: nothing is left of it, since it ended with its server")
    remote = FsspecClient(settings.url, dict(settings.options), settings.io_threads or 2)
    known = remote_contents.read_identity(remote)
    return OfflineStore(name, RemoteContents(remote), known, partial(remote_contents.raise_generation, remote))


def open_offline_stores(settings: Settings, *, alone: bool = True) -> list[OfflineStore]:
    """Open all stores of the settings; no lock remains when one fails. Raises DriverError."""
    opened: list[OfflineStore] = []
    try:
        for name, store in settings.named_stores.items():
            opened.append(open_offline(name, store, alone=alone))
    except BaseException:
        for opened_store in opened:
            opened_store.close()
        raise
    return opened
