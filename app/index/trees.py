"""The part of the index seam for plain files (layout *tree*)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.index.rows import Bucket, Committed, Conditions, Found, Intent, NewVersion, Part, Unhashed, Upload


class Trees(Protocol):
    """See `app.index.base.Index`, which this is a part of.

    `begin_…` raise KeyBusy while another intent is on the key, and what the objects' own methods raise. While an
    intent is there nothing else changes the key's row.
    """

    @property
    def incarnation(self) -> int:
        """Of this writer; 0 for one that registers none."""
        ...

    async def begin_tree_put(
        self, bucket_id: int, key: str, blob_id: int, new: NewVersion, conditions: Conditions | None
    ) -> Intent:
        """Decide the conditions and lock a key; `new.body` is the locator that its file will have."""
        ...

    async def begin_tree_complete(
        self, upload: Upload, chosen: Sequence[Part], blob_id: int, new: NewVersion, conditions: Conditions | None
    ) -> Intent | Committed:
        """The same for a file made of parts; the recorded result when the upload was completed before."""
        ...

    async def begin_tree_delete(
        self, bucket_id: int, key: str, version_id: str | None, conditions: Conditions | None
    ) -> Intent | None:
        """The same before a file is unlinked; None when the key has no row."""
        ...

    async def commit_intent(self, number: int) -> Committed | None:
        """The file is what was meant: make it so in the rows. None when that was done before."""
        ...

    async def drop_intent(self, number: int) -> None:
        """The file is what it was: forget the intent."""
        ...

    async def intent_on(self, bucket_id: int, key: str) -> Intent | None: ...
    async def intents_of(self, incarnation: int) -> list[Intent]:
        """What a writer was doing, oldest first."""
        ...

    async def position(self) -> int:
        """The last number drawn of the commit sequence."""
        ...

    async def adopt(self, bucket_id: int, owner_id: str, since: int, found: Sequence[Found]) -> list[int]:
        """Enter files that others made or changed, and queue them for hashing; the new sequence of each.

        0 where the look at the file is out of date: look again. `since` is the position before the first look.
        """
        ...

    async def forget_vanished(self, bucket_id: int, vanished: Sequence[tuple[str, int]]) -> list[bool]:
        """Remove rows (key, sequence seen) whose files others took away; False where the row is another by now."""
        ...

    async def current_after(self, bucket_id: int, after: str, limit: int) -> list[tuple[str, int, str]]:
        """Key, sequence and body of current objects behind a key, in order."""
        ...

    async def buckets_on(self, store: str) -> list[Bucket]:
        """The buckets whose data is on a store, or is being moved from it."""
        ...

    async def unhashed(self, after: int, limit: int) -> list[Unhashed]:
        """Versions behind `after` whose ETag stands for one that is not known yet; bucket 0 for one that is gone."""
        ...

    async def set_hashes(self, seq: int, body: str, etag: str, algorithm: str, checksum: str) -> bool:
        """Give a version its ETag and the checksum of the whole; False when it is not that version any more."""
        ...

    async def forget_unhashed(self, seqs: Sequence[int]) -> None: ...
