"""The driver seam: what a backing store does for the gateway, in terms of blobs.

A *blob* is an immutable run of bytes written once under an id that nothing else will ever use. A *locator* is the
small text that finds it again; the index keeps it and only the driver understands it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from storage_drivers.errors import DriverError
from storage_drivers.values import (
    UNTOLD,
    Append,
    Buffer,
    Capabilities,
    ClaimedRecord,
    Decision,
    Durability,
    FileSlice,
    PackBook,
    PackFile,
    Source,
    Usage,
    no_claim,
)

if TYPE_CHECKING:
    from storage_drivers.identity import Identity

__all__ = [
    "UNTOLD",
    "Append",
    "Buffer",
    "Capabilities",
    "ClaimedRecord",
    "Decision",
    "Driver",
    "Durability",
    "FileSlice",
    "PackBook",
    "PackFile",
    "Probed",
    "Source",
    "Usage",
    "no_claim",
]


class Probed(Protocol):
    """What a look at a mount found."""

    @property
    def line(self) -> str:
        """All that counts in one line, for the log."""
        ...


class Driver(Protocol):
    """One backing store. Every method raises `storage_drivers.errors.DriverError` and nothing of errno."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do, known once it is started."""
        ...

    @property
    def identity(self) -> Identity | None:
        """Which store it is, once it is started."""
        ...

    @property
    def probe(self) -> Probed | None:
        """What was found of its mount, once it is started; None where there is none."""
        ...

    async def start(self) -> None:
        """Make or check the store's fixed directories and its identity."""
        ...

    async def close(self) -> None:
        """Stop the driver's threads. Blobs being written are left for the sweep."""
        ...

    # when the mount does not answer
    def look(self, known: Identity, *, write: bool) -> None:
        """Look whether the store of this identity is there and, with `write`, takes writes. Needs no start.

        Blocks, and may hang. Raises StoreGone when it is not there, or what the mount says to the writing.
        """
        ...

    def running(self) -> list[object]:
        """The blocking calls that run now: what is there at two looks has run all the time between them."""
        ...

    @property
    def troubles(self) -> int:
        """How many calls failed by the mount so far: when there are more, a look at it is due."""
        ...

    @property
    def held(self) -> int:
        """Bytes of what was read that are kept in memory for who asks next."""
        ...

    def give_up(self, error: DriverError) -> None:
        """Fail at once whatever runs or waits, and take no more; instead of `close`. Never waits.

        What hangs goes on hanging, for nobody. What it does when it goes on is never taken for done.
        """
        ...

    # packs
    def open_packs(self, book: PackBook) -> None:
        """Be the writer of packs from now on: `capabilities.append_limit` says for which bodies."""
        ...

    async def close_packs(self) -> None:
        """Write what was given to `append`, and seal the packs."""
        ...

    def append(self, entry: Append) -> None:
        """Queue a small body for the next group of records, which share one write and one sync. Never waits.

        Raises DriverError when the driver takes none; whatever happens later is told by `entry.done`.
        """
        ...

    async def put(
        self,
        blob_id: int,
        source: Source,
        timings: dict[str, float] | None = None,
        piece: Buffer | None = None,
        claim: Callable[[], bytes] = no_claim,
    ) -> str:
        """Write one blob and return its locator once it is as durable as declared. `piece` was read already.

        `claim` is called once the body is verified, in the thread that writes, and gives what is kept behind the body.
        Seconds spent go into `timings` under "open", "write" and "sync". On any error nothing that a reader could
        find remains.
        """
        ...

    async def read(self, locator: str, offset: int, length: int) -> FileSlice | bytes:
        """The first of `length` bytes at `offset` of a committed blob: a slice of its file, or the bytes of a record.

        What is given was verified. That may be less than was asked for, but never nothing: ask again for the rest.
        Raises `BlobMissing` / `BlobDamaged`.
        """
        ...

    def read_now(self, locator: str, offset: int, length: int) -> bytes | None:
        """The same bytes at once if that needs no waiting for a device, else None. Called on the event loop."""
        ...

    async def feed(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        """Read the same bytes once and give them in order to `take`, called in the thread that reads."""
        ...

    async def discard(self, locator: str) -> None:
        """Give the space of a blob (or of a whole pack) back. What is not there is no error."""
        ...

    async def discard_many(self, locators: Sequence[str]) -> None:
        """Give back many blobs' space; on a durable driver files that are gone stay gone after a power cut.

        Of records, only what makes whole pages with its neighbours, and where the mount can.
        """
        ...

    def locator(self, blob_id: int) -> str:
        """The locator that `put` gives the blob of this id."""
        ...

    def blob_id(self, locator: str) -> int:
        """The id of the blob at a locator."""
        ...

    def packed(self, locator: str) -> tuple[int, int] | None:
        """The pack that holds a blob and the bytes of its record there; None for a blob that has a file of its own."""
        ...

    async def pack_file(self, pack_id: int) -> PackFile | None:
        """How large a pack is, None when there is none."""
        ...

    def pack_locator(self, pack_id: int) -> str:
        """The locator of a whole pack, to be discarded; its records go with it."""
        ...

    def whole_pack(self, locator: str) -> int:
        """The pack behind such a locator, 0 for any other locator."""
        ...

    def pack_prefix(self, pack_id: int) -> str:
        """What the locators of all blobs in a pack begin with, up to their first dot, and those of no other blob."""
        ...

    def packs(self) -> AsyncIterator[int]:
        """Every pack that has a file (fsck only)."""
        ...

    async def claimed(self, pack_id: int, offset: int, limit: int) -> tuple[list[ClaimedRecord], int]:
        """At most `limit` records of a pack, live or dead, from `offset` on, and where to go on; 0 begins and ends."""
        ...

    async def move(self, locators: Sequence[str]) -> dict[str, str]:
        """Write records again in another pack, durable in any case, with the same blob ids and claims.

        Returns the new locators. A record that is missing or damaged is left out; the old ones stay where they are.
        """
        ...

    async def forget_unlinked(self) -> None:
        """Close what is kept open of packs that are gone, so that the mount gives their space back."""
        ...

    async def discard_id(self, blob_id: int) -> bool:
        """Give back whatever a dead writer left under this id; True when there was something."""
        ...

    # journals: what the index decided, written beside the data
    async def write_journal(self, journal_id: int, decisions: Sequence[Decision]) -> int:
        """Add records to a journal, which the first call makes; its length once they are as durable as declared.

        One call at a time. After an error nothing can be added to that journal any more.
        """
        ...

    async def end_journal(self, journal_id: int) -> None:
        """Nothing is added to a journal by this process any more."""
        ...

    async def discard_journals(self, ids: Sequence[int]) -> None:
        """Unlink journals; one that is not there is no error."""
        ...

    # the whole store
    def reread(self, locator: str, take: Callable[[Buffer], None] | None) -> AsyncIterator[int]:
        """Read a blob again from the device, piece by piece, and check it; the bytes of each piece.

        `take` is given each piece in the thread that reads. Raises `BlobMissing` / `BlobDamaged`.
        """
        ...

    async def reread_records(
        self, locators: Sequence[str], take: Callable[[int, Buffer], None]
    ) -> dict[int, DriverError]:
        """The same for packed blobs, in one go: `take` is given each one's number and body, errors come back."""
        ...

    async def check_journal(self, journal_id: int) -> bool:
        """Whether every record of a journal is whole; true for one that is not there."""
        ...

    def walk(self) -> AsyncIterator[tuple[str, int]]:
        """Every blob's locator and size in bytes, in no order (fsck only); records that nobody holds any more too."""
        ...

    async def empty(self) -> bool:
        """Nothing was ever written to this store, or nothing is left."""
        ...

    async def usage(self) -> Usage:
        """Space left."""
        ...
