"""Identity and contents of a remote place, read without an index: for `sluice rebuild`.

All methods block.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

from sluice_s3.storage_drivers import identity
from sluice_s3.storage_drivers.base import JournalRecord
from sluice_s3.storage_drivers.errors import BlobMissing, DriverError, StoreFailed
from sluice_s3.storage_drivers.fsspec.filesystem import FsspecClient
from sluice_s3.storage_drivers.fsspec.journals import RemoteJournals
from sluice_s3.storage_drivers.fsspec.reader import RemoteReader
from sluice_s3.storage_drivers.identity import Identity
from sluice_s3.storage_drivers.objects.offline_reader import Blob, Damaged, OfflineStoreReader

NAME = re.compile("[0-9a-f]{16}")
PREFIX = "f:"
IDENTITY_BYTES = 64 << 10


class RemoteContents:
    """The counterpart of `storage_drivers.objects.offline_reader.OfflineStoreReader` for remote places."""

    def __init__(self, remote: FsspecClient) -> None:
        self._remote = remote
        self._reader = RemoteReader(remote)
        self._journals = RemoteJournals(remote)
        self._given = -1, 0
        """The last blob of `file_ids` and its object's bytes, which need no second query."""

    def path(self, blob_id: int) -> str:
        """Return the path of a blob's object."""
        return f"{self._remote.root}/data/{blob_id & 0xFF:02x}/{blob_id:016x}"

    def listed(self, low: int) -> list[tuple[int, int]]:
        """Return the blob ids in one of the 256 directories, and their objects' bytes."""
        entries = self._remote.list(f"{self._remote.root}/data/{low:02x}")
        return [(int(name, 16), size) for name, size in entries if NAME.fullmatch(name)]

    @property
    def empty(self) -> bool:
        """Whether nothing was ever written to this store, or nothing is left."""
        return not any(self.listed(low) for low in range(256)) and not self._journals.listed()

    # packs: there are none
    def packs(self) -> list[int]:
        """Return an empty list: there are no packs."""
        return []

    def pack_size(self, pack_id: int) -> tuple[int, int]:
        """Raise BlobMissing: there are no packs."""
        raise BlobMissing(f"pack {pack_id:x}")

    def records(self, pack_id: int) -> Iterator[Blob]:
        """Raise BlobMissing: there are no packs."""
        raise BlobMissing(f"pack {pack_id:x}")

    # blobs
    def file_ids(self) -> Iterator[int]:
        """Yield the ids of all blobs; reads directories only."""
        for low in range(256):
            for blob_id, size in sorted(self.listed(low)):
                self._given = blob_id, size
                yield blob_id

    def files(self) -> Iterator[Blob | Damaged]:
        """Yield every blob."""
        return map(self.file, self.file_ids())

    def file(self, blob_id: int) -> Blob | Damaged:
        """Return the blob of that id."""
        locator, path = f"{PREFIX}{blob_id:016x}", self.path(blob_id)
        try:
            known, size = self._given
            if known != blob_id:
                size = self._remote.size(path, locator)
            footer = self._reader.inspect(path, blob_id, locator, size)
        except DriverError as error:
            return Damaged(locator, str(error))
        return Blob(blob_id, locator, footer.body, 0, 0, footer.recovery_header)

    def intact(self, locator: str) -> bool:
        """Return whether header and body of a blob verify; reads all of it."""
        try:
            blob_id = self.blob_id(locator)
            for _ in self._reader.chunks(self.path(blob_id), blob_id, locator):
                pass
        except DriverError:
            return False
        return True

    # journals
    def journals(self) -> list[int]:
        """Return the ids of all journals, oldest first."""
        return sorted({journal_id for journal_id, _, _ in self._journals.listed()})

    def journal(self, journal_id: int) -> Iterator[JournalRecord | None]:
        """Yield the records of a journal, None for a damaged one."""
        return self._journals.read(journal_id)

    def journal_size(self, journal_id: int) -> int:
        """Return the bytes of a journal."""
        return sum(size for found, _, size in self._journals.listed() if found == journal_id)

    blob_id = staticmethod(OfflineStoreReader.blob_id)


# the store's identity: the files of storage_drivers/identity.py
def _identity_path(remote: FsspecClient, name: str) -> str:
    return f"{remote.root}/{name}"


def read_identity(remote: FsspecClient) -> Identity | None:
    """Return the identity of the store at a place; None when it has none.

    Raises StoreFailed for an identity that is not one of ours.
    """
    for name in (identity.NAME, identity.TEMPORARY_NAME):
        try:
            content = remote.read(_identity_path(remote, name), 0, IDENTITY_BYTES, name)
        except BlobMissing:
            continue
        if content.endswith(b"\n"):  # else a crash interrupted its creation: nothing can know it yet
            return identity.parse_identity(content)
    return None


def make_identity(remote: FsspecClient) -> Identity:
    """Give a place without blobs a new identity.

    For one process only (the launcher, before its workers). Raises StoreFailed when it has one, or blobs without one.
    """
    if read_identity(remote) is not None:
        raise StoreFailed("the store has an identity already")
    if not RemoteContents(remote).empty:
        raise StoreFailed(f"there are files in data but no {identity.NAME}")
    made = Identity(str(uuid.uuid4()), 1)
    _write(remote, identity.NAME, made)
    return made


def raise_generation(remote: FsspecClient) -> Identity:
    """Give the store the next generation, so that every older index refuses it.

    For one process only.
    """
    found = read_identity(remote)
    if found is None:
        raise StoreFailed("there is no store here")
    raised = Identity(found.store, found.generation + 1)
    for name in (identity.TEMPORARY_NAME, identity.NAME):
        _write(remote, name, raised)
    remote.remove(_identity_path(remote, identity.TEMPORARY_NAME))
    return raised


def _write(remote: FsspecClient, name: str, content: Identity) -> None:
    remote.remove(_identity_path(remote, name))
    remote.create(_identity_path(remote, name), identity.serialize(content))
