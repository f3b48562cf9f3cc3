"""The pending and committed usage that the processes of a server share; see `app.store.quotas`."""

from __future__ import annotations

from pathlib import Path

from sluice_s3.app.index.buckets.queries import Usage
from sluice_s3.app.server.shared_memory.oldest_requests import map_shared_file

SLOTS = 1024
PROBES = 4
"""Slots from a bucket's own on; one of them holds its pending usage."""
_ROWS = SLOTS + PROBES - 1
_WORD = 8


class _Pending:
    """Pending usage of a bucket, and its slot; None while all its slots are taken."""

    def __init__(self) -> None:
        self.usage = Usage(0, 0)
        self.at: int | None = None


class QuotaLedger:
    """One file mapped by all processes. Each writes doubles, exact up to 2**53, in its own words.

    Pending usage is stored under the bucket's id, so that it counts in no other bucket. When all slots for it are taken
    it is not published, and the other processes then admit up to the rest of the quota. Committed usage is stored for
    all buckets whose ids are `SLOTS` apart, as it must never decrease: it counts in each of them until that one is
    recounted.
    """

    def __init__(self, path: Path, process_slots: int, process_slot: int = 0, *, create: bool = False) -> None:
        """Raise OSError when the file does not exist."""
        cells = _ROWS * process_slots
        size = cells + 2 * cells + 2 * SLOTS * process_slots
        shared = memoryview(map_shared_file(path, size * _WORD, create=create)).cast("d")
        # by slot and process: the bucket id (0: free), then its pending bytes and objects
        self._ids, self._words = shared[:cells], shared[cells : 3 * cells]
        # by slot, bytes or objects, and process
        self._committed = shared[3 * cells :]
        self._process_slots, self._process_slot = process_slots, process_slot
        self._pending: dict[int, _Pending] = {}

    def report(self, bucket_id: int, coming: Usage, came: Usage) -> None:
        """See `app.store.quotas.PeerUsage`."""
        if any(came):
            at = bucket_id % SLOTS * 2 * self._process_slots + self._process_slot
            self._committed[at] += came.bytes  # before it stops being pending, so that it is always counted
            self._committed[at + self._process_slots] += came.objects
        if any(coming):
            self._add_pending(bucket_id, coming)

    def _add_pending(self, bucket_id: int, more: Usage) -> None:
        pending = self._pending.setdefault(bucket_id, _Pending())
        pending.usage = Usage(pending.usage.bytes + more.bytes, pending.usage.objects + more.objects)
        if pending.at is None and (at := self._free(bucket_id)) is not None:
            pending.at = at
            self._ids[at] = bucket_id  # the words of a free slot have no meaning
        if pending.at is not None:
            # each store is atomic; a reader of one old and one new word errs by this one write
            self._words[2 * pending.at], self._words[2 * pending.at + 1] = pending.usage
        if not any(pending.usage):
            del self._pending[bucket_id]
            if pending.at is not None:
                self._ids[pending.at] = 0

    def _free(self, bucket_id: int) -> int | None:
        first = bucket_id % SLOTS * self._process_slots + self._process_slot
        slots = range(first, first + PROBES * self._process_slots, self._process_slots)
        return next((at for at in slots if not self._ids[at]), None)

    def find_peer_usage(self, bucket_id: int) -> tuple[Usage, Usage]:
        """See `app.store.quotas.PeerUsage`."""
        process_slots, at = self._process_slots, bucket_id % SLOTS * 2 * self._process_slots
        size = sum(self._committed[at : at + process_slots]) - self._committed[at + self._process_slot]
        objects = (
            sum(self._committed[at + process_slots : at + 2 * process_slots])
            - self._committed[at + process_slots + self._process_slot]
        )
        return self._sum_pending_elsewhere(bucket_id), Usage(int(size), int(objects))

    def _sum_pending_elsewhere(self, bucket_id: int) -> Usage:
        size = objects = 0
        first = bucket_id % SLOTS * self._process_slots
        ids = self._ids[first : first + PROBES * self._process_slots].tolist()
        number = float(bucket_id)
        if number in ids:
            for at in (at for at, found in enumerate(ids, first) if found == number):
                words = self._words[2 * at : 2 * at + 2].tolist()
                if at % self._process_slots != self._process_slot and self._ids[at] == bucket_id:  # still this one
                    size, objects = size + int(words[0]), objects + int(words[1])
        return Usage(size, objects)

    def clear(self, process_slot: int) -> None:
        """Clear the pending usage of a dead process."""
        for at in range(process_slot, len(self._ids), self._process_slots):
            self._words[2 * at] = self._words[2 * at + 1] = self._ids[at] = 0
