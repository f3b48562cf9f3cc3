"""A store that no server uses: all that lies in it, read without an index. Blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

from app.settings import Settings, StoreSettings
from app.store.place import owner, prefix_of
from storage_drivers import identity
from storage_drivers.base import Decision
from storage_drivers.errors import BlobDamaged, StoreFailed
from storage_drivers.identity import Identity
from storage_drivers.objects.contents import Blob, Contents, Damaged
from storage_drivers.remote.contents import RemoteContents
from storage_drivers.remote.store import is_of_one_process


class Offline:
    """One store, with its name in all locators, held alone until `close`.

    Raises StoreFailed when it is in use, or there is none.
    """

    def __init__(
        self,
        name: str,
        contents: Contents | RemoteContents,
        known: Identity | None,
        raise_generation: Callable[[], Identity],
        held: int | None = None,
    ) -> None:
        if known is None:
            raise StoreFailed(f"store {name}: there is no store here")
        self.name = name
        self.identity = known
        self.raise_generation = raise_generation
        self.journals = contents.journals
        self.journal: Callable[[int], Iterator[Decision | None]] = contents.journal
        self.journal_size = contents.journal_size
        self.packs = contents.packs
        self.pack_size = contents.pack_size
        self._contents = contents
        self._prefix = prefix_of(name)
        self._held = held

    def close(self) -> None:
        """Let others use it."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)

    def records(self, pack_id: int) -> Iterator[Blob]:
        """See `Contents.records`."""
        for blob in self._contents.records(pack_id):
            yield blob._replace(locator=self._prefix + blob.locator)

    def files(self) -> Iterator[Blob | Damaged]:
        """See `Contents.files`."""
        for found in self._contents.files():
            yield found._replace(locator=self._prefix + found.locator)

    def intact(self, locator: str) -> bool:
        """See `Contents.intact`."""
        return self._contents.intact(locator.removeprefix(self._prefix))


def blob_id(locator: str) -> int | None:
    """The id of the blob at a locator of any store, None for what is no blob's."""
    bare = locator.removeprefix(prefix_of(owner(locator)))
    try:
        return Contents.blob_id(bare) if bare[:2] in ("f:", "p:") else None
    except BlobDamaged:
        return None


def open_offline(name: str, settings: StoreSettings) -> Offline:
    """The store of that name. Raises DriverError."""
    if settings.url is not None:
        return _open_remote(name, settings)
    root = settings.directory
    assert root is not None
    known = identity.read_identity(root)
    held = None if known is None else identity.hold(root, alone=True)
    return Offline(name, Contents(root), known, partial(identity.raise_generation, root), held)


def _open_remote(name: str, settings: StoreSettings) -> Offline:
    from storage_drivers.remote import contents as remote_contents
    from storage_drivers.remote.filesystem import Remote

    assert settings.url is not None
    if is_of_one_process(settings.url):
        raise StoreFailed(f"store {name}: nothing is left of it, since it ended with its server")
    remote = Remote(settings.url, dict(settings.options), settings.io_threads or 2)
    known = remote_contents.read_identity(remote)
    return Offline(name, RemoteContents(remote), known, partial(remote_contents.raise_generation, remote))


def open_all(settings: Settings) -> list[Offline]:
    """All stores of the settings; none is held when one fails. Raises DriverError."""
    opened: list[Offline] = []
    try:
        for name, store in settings.named_stores.items():
            opened.append(open_offline(name, store))
    except BaseException:
        for one in opened:
            one.close()
        raise
    return opened
