"""The pending and committed usage that the processes of a server share; see `app.store.quotas`."""

from __future__ import annotations

from pathlib import Path

from sluice_s3.app.index.usage import Usage
from sluice_s3.app.server.shared_memory.oldest_requests import map_shared_file

SLOTS = 1024
PROBES = 4
"""Slots from a bucket's own on; one of them holds its pending usage."""
_ROWS = SLOTS + PROBES - 1
_WORD = 8


class _Coming:
    """Pending usage of a bucket, and its slot; None while all its slots are taken."""

    def __init__(self) -> None:
        self.usage = Usage(0, 0)
        self.at: int | None = None


class QuotaLedger:
    """One file mapped by all processes. Each writes doubles, exact up to 2**53, in its own place.

    Pending usage is stored under the bucket's id, so that it counts in no other bucket. When all slots for it are taken
    it is not published, and the other processes then admit up to the rest of the quota. Committed usage is stored for
    all buckets whose ids are `SLOTS` apart, as it must never decrease: it counts in each of them until that one is
    recounted.
    """

    def __init__(self, path: Path, places: int, place: int = 0, *, create: bool = False) -> None:
        """Raise OSError when the file does not exist."""
        cells = _ROWS * places
        words = cells + 2 * cells + 2 * SLOTS * places
        shared = memoryview(map_shared_file(path, words * _WORD, create=create)).cast("d")
        # by slot and place: the bucket id (0: free), then its pending bytes and objects
        self._ids, self._words = shared[:cells], shared[cells : 3 * cells]
        # by slot, bytes or objects, and place
        self._came = shared[3 * cells :]
        self._places, self._place = places, place
        self._coming: dict[int, _Coming] = {}

    def report(self, bucket_id: int, coming: Usage, came: Usage) -> None:
        """See `app.store.quotas.PeerUsage`."""
        if any(came):
            at = bucket_id % SLOTS * 2 * self._places + self._place
            self._came[at] += came.bytes  # before it stops being pending, so that it is always counted
            self._came[at + self._places] += came.objects
        if any(coming):
            self._tell_coming(bucket_id, coming)

    def _tell_coming(self, bucket_id: int, more: Usage) -> None:
        mine = self._coming.setdefault(bucket_id, _Coming())
        mine.usage = Usage(mine.usage.bytes + more.bytes, mine.usage.objects + more.objects)
        if mine.at is None and (at := self._free(bucket_id)) is not None:
            mine.at = at
            self._ids[at] = bucket_id  # the words of a free slot have no meaning
        if mine.at is not None:
            # each store is atomic; a reader of one old and one new word errs by this one write
            self._words[2 * mine.at], self._words[2 * mine.at + 1] = mine.usage
        if not any(mine.usage):
            del self._coming[bucket_id]
            if mine.at is not None:
                self._ids[mine.at] = 0

    def _free(self, bucket_id: int) -> int | None:
        first = bucket_id % SLOTS * self._places + self._place
        slots = range(first, first + PROBES * self._places, self._places)
        return next((at for at in slots if not self._ids[at]), None)

    def find_peer_usage(self, bucket_id: int) -> tuple[Usage, Usage]:
        """See `app.store.quotas.PeerUsage`."""
        places, at = self._places, bucket_id % SLOTS * 2 * self._places
        size = sum(self._came[at : at + places]) - self._came[at + self._place]
        objects = sum(self._came[at + places : at + 2 * places]) - self._came[at + places + self._place]
        return self._coming_elsewhere(bucket_id), Usage(int(size), int(objects))

    def _coming_elsewhere(self, bucket_id: int) -> Usage:
        size = objects = 0
        first = bucket_id % SLOTS * self._places
        ids = self._ids[first : first + PROBES * self._places].tolist()
        wanted = float(bucket_id)
        if wanted in ids:
            for at in (at for at, found in enumerate(ids, first) if found == wanted):
                words = self._words[2 * at : 2 * at + 2].tolist()
                if at % self._places != self._place and self._ids[at] == bucket_id:  # still this one
                    size, objects = size + int(words[0]), objects + int(words[1])
        return Usage(size, objects)

    def clear(self, place: int) -> None:
        """Clear the pending usage of a dead process."""
        for at in range(place, len(self._ids), self._places):
            self._words[2 * at] = self._words[2 * at + 1] = self._ids[at] = 0
