"""The driver interface: what a backing store does for the gateway, in terms of blobs.

A *blob* is an immutable run of bytes, written once under an id that is never used again. A *locator* is the short text
that finds it; the index stores it and only the driver understands it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from sluice_s3.storage_drivers.errors import DriverError
from sluice_s3.storage_drivers.types import (
    UNKNOWN_SIZE,
    AppendRequest,
    BodySource,
    Buffer,
    Capabilities,
    Durability,
    FileSlice,
    JournalRecord,
    PackFile,
    PackRegistry,
    RecordInfo,
    Usage,
    no_recovery_header,
)

if TYPE_CHECKING:
    from sluice_s3.storage_drivers.identity import Identity

__all__ = [
    "UNKNOWN_SIZE",
    "AppendRequest",
    "BodySource",
    "Buffer",
    "Capabilities",
    "Driver",
    "Durability",
    "FileSlice",
    "JournalRecord",
    "PackFile",
    "PackRegistry",
    "ProbeResult",
    "RecordInfo",
    "Usage",
    "no_recovery_header",
]


class ProbeResult(Protocol):
    """The result of a mount's probe."""

    @property
    def line(self) -> str:
        """The findings in one line, for the log."""
        ...

    @property
    def lacks(self) -> list[str]:
        """What was seen not to work."""
        ...

    @property
    def warnings(self) -> list[str]:
        """What the operator had better change."""
        ...


class Driver(Protocol):
    """One backing store.

    Every method raises `storage_drivers.errors.DriverError`, never an OSError.
    """

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the store, known once it is started."""
        ...

    @property
    def identity(self) -> Identity | None:
        """The identity of the store, once it is started."""
        ...

    @property
    def probe(self) -> ProbeResult | None:
        """The result of the mount's probe, once it is started; None where there is none."""
        ...

    async def start(self) -> None:
        """Create or check the store's fixed directories and its identity."""
        ...

    async def close(self) -> None:
        """Stop the driver's threads. Blobs being written are left for the sweep."""
        ...

    # when the mount does not answer
    def look(self, known: Identity, *, write: bool) -> None:
        """Check whether the store of this identity is there and, with `write`, accepts writes.

        It needs no start. It blocks, and may hang. Raises StoreGone when the store is not there, or the error of the
        write.
        """
        ...

    def running(self) -> list[object]:
        """Return the blocking calls that run now.

        A call returned twice has run all the time between.
        """
        ...

    @property
    def troubles(self) -> int:
        """The number of calls that failed by the mount.

        When it grows, a check is due.
        """
        ...

    @property
    def cached_bytes(self) -> int:
        """Bytes of reads that are cached in memory."""
        ...

    def give_up(self, error: DriverError) -> None:
        """Fail all running and waiting calls at once, and refuse new ones; instead of `close`.

        It never waits. A hanging call goes on without a caller. Its late result never counts as done.
        """
        ...

    # packs
    def open_packs(self, book: PackRegistry) -> None:
        """Begin to write packs: `capabilities.append_limit` says for which bodies."""
        ...

    async def close_packs(self) -> None:
        """Write what `append` queued, and seal the packs."""
        ...

    def append(self, entry: AppendRequest) -> None:
        """Queue a small body for the next group of records; never wait.

        A group shares one write and one sync. Raises DriverError when the driver accepts none; later outcomes go to
        `entry.on_done`.
        """
        ...

    async def put(
        self,
        blob_id: int,
        source: BodySource,
        timings: dict[str, float] | None = None,
        piece: Buffer | None = None,
        make_header: Callable[[], bytes] = no_recovery_header,
    ) -> str:
        """Write one blob and return its locator once it is as durable as declared.

        `piece` was read from the source already. `make_header` is called once the body is verified, in the thread that
        writes, and returns the recovery header. Seconds spent go into `timings` under "open", "write" and "sync". After
        an error nothing remains that a reader could find.
        """
        ...

    async def read(self, locator: str, offset: int, length: int) -> FileSlice | bytes:
        """Return the first of `length` bytes at `offset` of a committed blob.

        The result is a slice of its file, or the bytes of a record, all verified. It may be shorter than `length`, but
        is never empty: call again for the rest. Raises `BlobMissing` / `BlobDamaged`.
        """
        ...

    def try_read(self, locator: str, offset: int, length: int) -> bytes | None:
        """Return the same bytes if that needs no waiting for a device, else None.

        Called on the event loop.
        """
        ...

    async def feed(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        """Read the same bytes once and pass them to `take`, in order.

        Called in the thread that reads.
        """
        ...

    async def discard(self, locator: str) -> None:
        """Free the space of a blob (or of a whole pack).

        A missing one is no error.
        """
        ...

    async def discard_many(self, locators: Sequence[str]) -> None:
        """Free the space of many blobs.

        On a durable driver deleted files stay deleted after a power cut. Of records, only whole pages of neighbours are
        freed, and where the mount can.
        """
        ...

    def locator(self, blob_id: int) -> str:
        """Return the locator that `put` gives the blob of this id."""
        ...

    def blob_id(self, locator: str) -> int:
        """Return the id of the blob at a locator."""
        ...

    def packed(self, locator: str) -> tuple[int, int] | None:
        """Return a blob's pack and its record's bytes; None if it has its own file."""
        ...

    async def pack_file(self, pack_id: int) -> PackFile | None:
        """Return the size of a pack; None when there is none."""
        ...

    def pack_locator(self, pack_id: int) -> str:
        """Return the locator of a whole pack, for its discard with all its records."""
        ...

    def whole_pack(self, locator: str) -> int:
        """Return the pack of such a locator, 0 for any other locator."""
        ...

    def pack_prefix(self, pack_id: int) -> str:
        """Return the prefix of the locators of a pack's blobs, and of no other blob.

        It ends with their first dot.
        """
        ...

    def packs(self) -> AsyncIterator[int]:
        """Yield every pack that has a file (fsck only)."""
        ...

    async def list_records(self, pack_id: int, offset: int, limit: int) -> tuple[list[RecordInfo], int]:
        """Return at most `limit` records of a pack, live or dead, from `offset` on.

        Also returns where to continue; 0 begins and ends.
        """
        ...

    async def move(self, locators: Sequence[str]) -> dict[str, str]:
        """Copy records to another pack, durable in any case, with the same ids and headers.

        Returns the new locators. A record that is missing or damaged is left out; the old ones stay where they are.
        """
        ...

    async def close_unlinked(self) -> None:
        """Close open descriptors of deleted packs, so that the mount frees their space."""
        ...

    async def discard_id(self, blob_id: int) -> bool:
        """Delete whatever a dead writer left under this id; return whether there was something."""
        ...

    # journals: what the index committed, written beside the data
    async def write_journal(self, journal_id: int, records: Sequence[JournalRecord]) -> int:
        """Append records to a journal, created by the first call; return its length.

        It returns once the records are as durable as declared. One call at a time. After an error nothing can be
        appended to that journal any more.
        """
        ...

    async def end_journal(self, journal_id: int) -> None:
        """Close a journal: this process appends nothing more."""
        ...

    async def journal_sizes(self) -> dict[int, int]:
        """Return the journals in the store, and the bytes of each."""
        ...

    def read_journal(self, journal_id: int) -> AsyncIterator[JournalRecord | None]:
        """Yield the records of a journal in order, None for a damaged one. Raises BlobMissing."""
        ...

    async def journal_tail(self, journal_id: int, length: int) -> list[JournalRecord | None]:
        """Return the records behind the first `length` bytes of a journal, without bodies.

        A damaged record is None.
        """
        ...

    async def discard_journals(self, ids: Sequence[int]) -> None:
        """Unlink journals; a missing one is no error."""
        ...

    # the whole store
    def reread(self, locator: str, take: Callable[[Buffer], None] | None) -> AsyncIterator[int]:
        """Read a blob again from the device, piece by piece, and check it.

        Yields the bytes of each piece. `take` receives each piece in the thread that reads. Raises `BlobMissing` /
        `BlobDamaged`.
        """
        ...

    async def reread_records(
        self, locators: Sequence[str], take: Callable[[int, Buffer], None]
    ) -> dict[int, DriverError]:
        """Do the same for records; return their errors.

        `take` receives each record's number and body.
        """
        ...

    async def check_journal(self, journal_id: int) -> bool:
        """Return whether every record of a journal is whole; true for a missing journal."""
        ...

    def walk(self) -> AsyncIterator[tuple[str, int]]:
        """Yield every blob's locator and size, in no order (fsck only).

        Dead records are included.
        """
        ...

    async def empty(self) -> bool:
        """Return whether nothing was ever written to this store, or nothing is left."""
        ...

    async def usage(self) -> Usage:
        """Return the space left."""
        ...
