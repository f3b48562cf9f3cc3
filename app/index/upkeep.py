"""The part of the index seam that jobs and commands use: writers, garbage, packs, journals, what fsck and scrub ask."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from app.index.decisions import Changes, Place
from app.index.moving import Body
from app.index.moving import Held as HeldBlob
from app.index.newest import Wrong
from app.index.rows import Bucket, Discard, Held, Holder, IdRange, Journal, Move, Pack, Suspect, Swap, Writer
from app.index.schema import DEFAULT
from app.index.scrubbing import Live
from app.index.usage import NO_CLASSES, Usage


class Reference(NamedTuple):
    """A row that holds a blob: `kind` is version, part, piece or discard; `end` is where its bytes end in the blob."""

    kind: str
    locator: str
    end: int
    bucket: str
    key: str


class Upkeep(Protocol):
    """See `app.index.base.Index`, which this is a part of."""

    # writers and what they leave
    async def reserve_ids(self, count: int) -> IdRange:
        """Blob ids that nothing else will ever use, for this incarnation."""
        ...

    async def retire_range(self, ids: IdRange) -> None:
        """Every id of the range is committed or discarded: the sweep need not ask for it."""
        ...

    async def writers(self) -> list[Writer]: ...
    def writer_is_gone(self, writer: Writer) -> bool:
        """Whether the process of that incarnation has ended."""
        ...

    async def declare_dead(self, incarnation: int) -> None:
        """Law 5: after this no transaction of that incarnation commits."""
        ...

    async def ranges(self, incarnation: int) -> list[IdRange]: ...
    async def held(self, locators: Sequence[str], since: int = 0) -> set[str]:
        """Those of the locators that a version, a part, a piece or the discard queue holds.

        Reads every row, or only those that can hold ids of a range when `since` is the first id of that range.
        """
        ...

    async def forget_writer(self, incarnation: int) -> None:
        """Remove a dead incarnation and its ranges, all swept."""
        ...

    # fsck
    def references(self) -> AsyncIterator[Reference]:
        """Every blob that a version, a part, a piece or the discard queue holds, read in batches."""
        ...

    async def miscounted(self) -> list[tuple[str, int, int]]:
        """Bodies whose kept count of holders is not the true one: (body, kept, true)."""
        ...

    async def newest_wrong(self) -> list[Wrong]:
        """Keys that have not exactly one newest version, which was made last. Reads all versions."""
        ...

    async def mend_newest(self, bucket_id: int, key: str) -> None:
        """Let the version of a key that was made last be its newest, and no other."""
        ...

    # discards
    async def discards(self, after: int, limit: int) -> list[Discard]:
        """The oldest entries of the discard queue with ids greater than `after`."""
        ...

    async def expand_discard(self, discard: Discard, limit: int) -> bool:
        """Release up to `limit` pieces of a queued multipart body; True when the entry is gone."""
        ...

    async def forget_discards(self, gone: Sequence[tuple[int, int, int]]) -> None:
        """Remove entries whose blobs are gone: (entry, pack, bytes), which count as dead in that pack.

        Pack 0 for a blob with a file of its own; bytes 0 for a whole pack, which is forgotten with the entry. May be
        called again for the same entries.
        """
        ...

    # packs
    async def open_pack(self, store: str = DEFAULT) -> int:
        """Enter a new pack of this incarnation on a store; its id is nobody else's."""
        ...

    async def seal_pack(self, pack_id: int, size: int, *, swept: bool = False) -> None:
        """Nothing is added any more to a pack of `size` bytes; `swept` when its writer died and it is to be counted."""
        ...

    async def packs_of(self, incarnation: int) -> list[Pack]: ...
    async def refuse_blobs(self, refused: Sequence[tuple[str, int, int]], store: str = DEFAULT) -> None:
        """Records (locator, pack, bytes) of a store whose commit was refused: count them dead, never to be restored."""
        ...

    async def packs(self) -> list[Pack]:
        """All of them."""
        ...

    async def count_dead(self, dead: Sequence[tuple[int, int]]) -> None:
        """(pack, bytes) of records that no row holds nor ever held."""
        ...

    async def correct_dead(self, pack_id: int, seen: int, true: int) -> bool:
        """Set the dead bytes of a sealed pack to `true`; False when they are not `seen` any more."""
        ...

    async def retire_pack(self, pack_id: int, overhead: int, locator: str) -> bool:
        """Queue a sealed pack for discard by its locator if all but `overhead` bytes of it are counted dead."""
        ...

    # compaction
    async def find_holders(self, suspects: Sequence[Suspect]) -> dict[str, tuple[Holder, ...]]:
        """Of those records whose every holder is where its claim says, the holders."""
        ...

    async def held_in(self, prefixes: Sequence[str], limit: int) -> Held:
        """Every holder of a record whose locator begins so up to its first dot. Reads every row, in one state.

        It stops looking after `limit` holders.
        """
        ...

    async def held_bytes(self, prefixes: Sequence[str], size_of: Callable[[str], int]) -> dict[str, int]:
        """Bytes of the blobs that a row or the discard queue holds, by how their locators begin up to the first dot.

        Reads every row, in one state; `size_of` gives the bytes of a locator.
        """
        ...

    async def move_records(self, moves: Sequence[Move]) -> list[bool]:
        """Give records their new places in all rows that hold them, and count the bytes of the other places dead.

        One is left as it is (False) when its holders are not those given any more.
        """
        ...

    async def live_bytes(self, packed: Callable[[str], tuple[int, int] | None]) -> list[tuple[Pack, int]]:
        """Each sealed pack whose writer is gone, with the bytes in it that a row or the discard queue holds.

        `packed` gives pack and bytes of a locator. In one state of the index; what such a pack holds only shrinks.
        """
        ...

    # buckets on their way to another store
    async def begin_move(self, name: str, store: str) -> Bucket:
        """From now on what is written into a bucket goes to another store. Raises NoSuchBucket, BucketBusy."""
        ...

    async def end_move(self, bucket: Bucket) -> bool:
        """Nothing of it is left on the store that it comes from. False while its own store's journals lack some."""
        ...

    async def moving(self) -> list[Bucket]: ...
    async def snapshot_is_due(self, store: str, told: int) -> bool:
        """Whether a bucket came to a store since the newest whole snapshot of its journals was begun, and these tell
        of changes up to then; they tell up to `told`."""
        ...

    async def ever_moved(self) -> bool:
        """Whether any bucket was ever moved: then old rows may hold young blobs."""
        ...

    async def bodies(self, bucket_id: int, after: int) -> list[Body]:
        """A batch of a bucket's versions with numbers greater than `after` that have a body."""
        ...

    async def held_by_pieces(self, upload: int) -> list[HeldBlob]:
        """The blobs of a completed upload: start, part number, locator, how many rows hold it."""
        ...

    async def held_by_parts(self, bucket_id: int) -> list[tuple[str, HeldBlob]]:
        """The blobs of a bucket's open uploads, with the key: upload, number, locator, how many rows hold it."""
        ...

    async def bucket_size(self, bucket_id: int) -> tuple[int, int]:
        """Versions of a bucket and their bytes. Reads all versions."""
        ...

    async def any_on(self, store: str) -> bool:
        """Whether any row holds a blob of a store. Reads all rows when none does."""
        ...

    async def swap(self, swaps: Sequence[Swap]) -> list[bool]:
        """Let rows hold a copy instead of a body; False for one that does not hold the body any more."""
        ...

    async def split(self, seq: int, bucket_id: int, key: str, old: str, places: dict[str, str]) -> str | None:
        """Give a version pieces of its own with its blobs at other places; the new body, None when it changed."""
        ...

    async def make_durable(self) -> None:
        """Return when everything committed by now survives a power cut, on a relaxed index too."""
        ...

    async def forget_pack(self, pack_id: int) -> None:
        """Remove a pack whose file is gone."""
        ...

    # what is written down beside the data (app/jobs/decisions.py), by each store for its own buckets
    async def watermark(self, store: str = DEFAULT) -> int:
        """Every change up to this number of the commit sequence is in a journal."""
        ...

    async def open_journal(self, snapshot: int, store: str = DEFAULT) -> int:
        """Enter a new journal; its id is nobody else's."""
        ...

    async def journals(self, store: str = DEFAULT) -> list[Journal]: ...
    async def decided(self, journal: Journal, until: int, settled: int) -> None:
        """Changes up to `until` are in journals, `journal` is as given, and removals up to `settled` can go."""
        ...

    async def set_journal(self, journal: Journal) -> None: ...
    async def forget_journals(self, ids: Sequence[int]) -> None: ...
    async def changes(
        self, after: int, until: int | None = None, store: str = DEFAULT, completed: int | None = None
    ) -> Changes:
        """A batch of what changed behind `after` (and up to `until`); see `app.index.decisions.changes`."""
        ...

    async def settings_rows(self) -> str:
        """Accounts, keys and buckets as JSON: an object of arrays of rows."""
        ...

    async def upload_rows(self, ids: Sequence[int]) -> str: ...
    async def upload_rows_after(self, after: int, store: str = DEFAULT) -> tuple[str, int | None]:
        """A batch of completed uploads, and the id to go on from, None at the end."""
        ...

    async def piece_rows(
        self, ids: Sequence[int] | None, after: Place, store: str = DEFAULT
    ) -> tuple[str, Place | None]:
        """A batch of pieces (of all the store's uploads without `ids`), and where to go on, None at the end."""
        ...

    async def versions_count(self, store: str = DEFAULT) -> int: ...
    async def bucket_usage(self, bucket_id: int) -> Usage:
        """What a bucket holds. Reads all of its rows."""
        ...

    async def stored_bytes(
        self, store: str, classes: Mapping[str, str] = NO_CLASSES, trees: Collection[str] = ()
    ) -> int:
        """Bytes of the objects and parts of a store's buckets, and of the storage `classes` whose store it is, unless
        they are plain files on the stores `trees`. Reads all of its rows."""
        ...

    async def undecided(self, store: str = DEFAULT) -> tuple[int, int]:
        """How many changes are in no journal yet (counted up to some bound), and the milliseconds of the oldest."""
        ...

    # blobs that were found damaged
    async def quarantine(self) -> list[tuple[str, str, int]]:
        """(locator, reason, milliseconds) of each."""
        ...

    async def add_quarantine(self, locator: str, reason: str) -> None: ...
    async def remove_quarantine(self, locators: Sequence[str]) -> None: ...
    async def live(self, kind: str, after: Place) -> tuple[list[Live], Place | None]:
        """A batch of rows that hold a blob, by kind, and the place to go on from, None at the end."""
        ...

    async def holds(self, row: Live) -> bool:
        """Whether a row that `live` gave holds its blob still."""
        ...

    async def note(self, name: str) -> str: ...
    async def set_note(self, name: str, value: str) -> None: ...
    async def change_keyring(self, old: str, new: str) -> None:
        """Put another sealed key ring in the place of `old`, and tell every process.

        Raises ConditionalRequestConflict when `old` is not what is there (empty: none).
        """
        ...
