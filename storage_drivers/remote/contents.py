"""Which store a remote place is, and all that lies there, read without an index: for `sluice rebuild`. Blocks."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

from storage_drivers import identity
from storage_drivers.base import Decision
from storage_drivers.errors import BlobMissing, DriverError, StoreFailed
from storage_drivers.identity import Identity
from storage_drivers.objects.contents import Blob, Contents, Damaged
from storage_drivers.remote.filesystem import Remote
from storage_drivers.remote.journals import RemoteJournals
from storage_drivers.remote.reader import RemoteReader

NAME = re.compile("[0-9a-f]{16}")
PREFIX = "f:"
IDENTITY_BYTES = 64 << 10


class RemoteContents:
    """What `storage_drivers.objects.contents.Contents` is to a mount."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._reader = RemoteReader(remote)
        self._journals = RemoteJournals(remote)

    def path(self, blob_id: int) -> str:
        """The object of a blob."""
        return f"{self._remote.root}/data/{blob_id & 0xFF:02x}/{blob_id:016x}"

    def listed(self, low: int) -> list[tuple[int, int]]:
        """Ids of the blobs in one of the 256 directories, and the bytes of their objects."""
        entries = self._remote.list(f"{self._remote.root}/data/{low:02x}")
        return [(int(name, 16), size) for name, size in entries if NAME.fullmatch(name)]

    @property
    def empty(self) -> bool:
        """Nothing was ever written to this store, or nothing is left."""
        return not any(self.listed(low) for low in range(256)) and not self._journals.listed()

    # packs: there are none
    def packs(self) -> list[int]:
        """None."""
        return []

    def pack_size(self, pack_id: int) -> tuple[int, int]:
        """Raises BlobMissing."""
        raise BlobMissing(f"pack {pack_id:x}")

    def records(self, pack_id: int) -> Iterator[Blob]:
        """Raises BlobMissing."""
        raise BlobMissing(f"pack {pack_id:x}")

    # blobs
    def files(self) -> Iterator[Blob | Damaged]:
        """Every blob."""
        for low in range(256):
            for blob_id, size in sorted(self.listed(low)):
                locator = f"{PREFIX}{blob_id:016x}"
                try:
                    footer = self._reader.inspect(self.path(blob_id), blob_id, locator, size)
                except DriverError as error:
                    yield Damaged(locator, str(error))
                else:
                    yield Blob(blob_id, locator, footer.body, 0, 0, footer.claim)

    def intact(self, locator: str) -> bool:
        """Whether claim and body of a blob are what was written; reads all of it."""
        try:
            blob_id = self.blob_id(locator)
            for _ in self._reader.chunks(self.path(blob_id), blob_id, locator):
                pass
        except DriverError:
            return False
        return True

    # journals
    def journals(self) -> list[int]:
        """Ids of all journals, oldest first."""
        return sorted({journal_id for journal_id, _, _ in self._journals.listed()})

    def journal(self, journal_id: int) -> Iterator[Decision | None]:
        """The records of a journal, None for one that is damaged."""
        return self._journals.read(journal_id)

    def journal_size(self, journal_id: int) -> int:
        """Bytes of a journal."""
        return sum(size for found, _, size in self._journals.listed() if found == journal_id)

    blob_id = staticmethod(Contents.blob_id)


# which store it is: the files of storage_drivers/identity.py
def _identity_path(remote: Remote, name: str) -> str:
    return f"{remote.root}/{name}"


def read_identity(remote: Remote) -> Identity | None:
    """The identity of the store at a place, None when it has none. Raises StoreFailed for what is not one of ours."""
    for name in (identity.NAME, identity.NEW):
        try:
            content = remote.read(_identity_path(remote, name), 0, IDENTITY_BYTES, name)
        except BlobMissing:
            continue
        if content.endswith(b"\n"):  # else a crash while it was made: nothing can know it yet
            return identity.parsed(content)
    return None


def make_identity(remote: Remote) -> Identity:
    """Give a place without blobs a new identity. Raises StoreFailed when it has one, or blobs of none.

    For one process only (the launcher, before its workers).
    """
    if read_identity(remote) is not None:
        raise StoreFailed("the store has an identity already")
    if not RemoteContents(remote).empty:
        raise StoreFailed(f"there are files in data but no {identity.NAME}")
    made = Identity(str(uuid.uuid4()), 1)
    _write(remote, identity.NAME, made)
    return made


def raise_generation(remote: Remote) -> Identity:
    """Give the store the next generation, so that every index of an older one refuses it. For one process only."""
    found = read_identity(remote)
    if found is None:
        raise StoreFailed("there is no store here")
    raised = Identity(found.store, found.generation + 1)
    for name in (identity.NEW, identity.NAME):
        _write(remote, name, raised)
    remote.remove(_identity_path(remote, identity.NEW))
    return raised


def _write(remote: Remote, name: str, content: Identity) -> None:
    remote.remove(_identity_path(remote, name))
    remote.create(_identity_path(remote, name), identity.content_of(content))
