"""Requests and bytes by bucket, of all processes of a server, in one mapped file.

The first buckets that get requests have a row each; all later ones share the last row, `other`. A row stays with its
bucket while the server runs, so that its counts only grow: that is what Prometheus needs. Only buckets that exist are
counted, so that no client can fill the rows by asking for names.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import NamedTuple

from sluice_s3.app.private_files import open_file
from sluice_s3.app.server.shared_memory.counters import CLASS_AT, STATUS_CLASSES, family, open_or_create

OTHER = "other"
"""Label of all buckets without a row. No bucket can have this label twice: a bucket of that name counts here too."""
NAME_BYTES = 64
"""A bucket's name has at most 63."""
_STATUS = len(STATUS_CLASSES)
_ROW = _STATUS + 2
"""Words of a row: requests by status class, bytes in, bytes out."""


class BucketCounts(NamedTuple):
    """What all processes counted of one bucket."""

    statuses: tuple[float, ...]
    """Answers by status class, 1xx to 5xx."""
    bytes_in: float
    bytes_out: float


class BucketCounters:
    """The file: a process writes its own rows and reads all. Words are doubles, as in `Counters`."""

    def __init__(self, path: Path, buckets: int, slot_count: int, slot: int = 0, *, create: bool = False) -> None:
        """Map the launcher's file, or create it when the launcher's code or settings are older."""
        self._path = path.with_name(f"{path.name}-{buckets}-{_ROW}")
        if create:
            for old in path.parent.glob(f"{path.name}-*"):
                old.unlink(missing_ok=True)
        names, words = buckets * NAME_BYTES, slot_count * (buckets + 1) * _ROW * 8
        shared = memoryview(open_or_create(self._path, names + words, create=create))
        self._names, self._all = shared[:names], shared[names:].cast("d")
        self._buckets, self._slot_count = buckets, slot_count
        rows = (buckets + 1) * _ROW
        self._own = self._all[slot * rows : (slot + 1) * rows]
        self._row_of = {OTHER: buckets * _ROW}
        self._is_full = False

    def count(self, bucket: str, status: int, bytes_in: int, bytes_out: int) -> None:
        """Count an answered request."""
        at = self._row_of.get(bucket)
        if at is None:
            at = self._buckets * _ROW if self._is_full else self._claim(bucket)
        words = self._own
        words[at + CLASS_AT.get(status, _STATUS - 1)] += 1
        if bytes_in:
            words[at + _STATUS] += bytes_in
        if bytes_out:
            words[at + _STATUS + 1] += bytes_out

    def _claim(self, bucket: str) -> int:
        """Return the row of a bucket, which gets a free one if there is one left."""
        fd = open_file(self._path, os.O_RDWR)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            known = self._known()
            if bucket not in known and bucket != OTHER and len(known) < self._buckets:
                at = len(known) * NAME_BYTES
                name = bucket.encode()
                self._names[at : at + len(name)] = name
                known.append(bucket)
        finally:
            os.close(fd)
        self._row_of = {name: number * _ROW for number, name in enumerate(known)} | {OTHER: self._buckets * _ROW}
        self._is_full = len(known) >= self._buckets
        return self._row_of.get(bucket, self._buckets * _ROW)

    def _known(self) -> list[str]:
        """Return the buckets that have a row, in the order of their rows."""
        names = bytes(self._names)
        found = (names[at : at + NAME_BYTES].rstrip(b"\0") for at in range(0, len(names), NAME_BYTES))
        return [name.decode() for name in found if name]

    def read(self) -> dict[str, BucketCounts]:
        """Return the counts of the buckets with requests, and of `other`."""
        found = {}
        place = (self._buckets + 1) * _ROW
        for row, bucket in [*enumerate(self._known()), (self._buckets, OTHER)]:
            *statuses, bytes_in, bytes_out = (sum(self._all[row * _ROW + word :: place]) for word in range(_ROW))
            if any(statuses) or bucket == OTHER:
                found[bucket] = BucketCounts(tuple(statuses), bytes_in, bytes_out)
        return found

    def render(self) -> bytes:
        """Return all values in the text format of Prometheus."""
        requests: list[str] = []
        moved: list[str] = []
        for bucket, counts in self.read().items():
            requests += [
                f'sluice_bucket_requests_total{{bucket="{bucket}",status="{status}"}} {count:.0f}'
                for status, count in zip(STATUS_CLASSES, counts.statuses, strict=True)
                if count or status == "2xx"
            ]
            for direction, total in (("in", counts.bytes_in), ("out", counts.bytes_out)):
                moved.append(
                    f'sluice_bucket_transfer_bytes_total{{bucket="{bucket}",direction="{direction}"}} {total:.0f}'
                )
        lines = [
            *family("sluice_bucket_requests_total", "counter", "Requests answered, by bucket.", requests),
            *family("sluice_bucket_transfer_bytes_total", "counter", "Bytes of bodies, by bucket.", moved),
        ]
        return ("\n".join(lines) + "\n").encode()
