"""Listing of all versions of a bucket: by key, newest first within a key.

Current objects and the others have separate indexes. Both are read from the same position and merged, so the cost
follows the size of the result here too.
"""

from __future__ import annotations

from heapq import merge
from itertools import islice

from sluice_s3.app.index.objects.listing import MAX_PAGE_KEYS, start_key, successor
from sluice_s3.app.index.objects.rows import NULL_VERSION
from sluice_s3.app.index.sql.transaction import Row, Transaction
from sluice_s3.app.index.versioning import version_ids
from sluice_s3.app.index.versioning.rows import ListedVersionEntry, VersionsPage
from sluice_s3.app.index.versioning.statements import CURRENT_OF, LISTINGS, LISTINGS_WITH_HEADERS, NULL_OF, Listings

KEY, MODIFIED, VERSION_ID = map(ListedVersionEntry._fields.index, ("key", "modified", "version_id"))


def list_versions(
    bucket_id: int,
    prefix: str,
    delimiter: str,
    key_marker: str,
    version_id: str,
    limit: int,
    *,
    headers: bool = False,
) -> Transaction[VersionsPage]:
    """Return a page of all versions, newest first within a key.

    The page continues after the version `version_id` of `key_marker`; without `version_id`, after that whole key.
    Prefixes and `headers` are as in `list_current`.
    """
    first, end = start_key(prefix, delimiter, key_marker), successor(prefix)
    listed = _Listed(delimiter, len(prefix), limit, LISTINGS_WITH_HEADERS if headers else LISTINGS)
    if limit <= 0 or first >= end:  # the marker is after the prefix: skip even the rest of its key
        return listed.page()
    if version_id and first == key_marker + "\0":  # else the key is rolled up, or is not listed
        time = yield from _time_of(bucket_id, key_marker, version_id)
        if time is None:
            first = key_marker  # removed: a client that removes what it lists has removed all versions before it
        else:
            yield from _older_of_key(listed, bucket_id, key_marker, time, with_current=True)
    yield from _from_key(listed, bucket_id, first, end)
    return listed.page()


class _Listed:
    """The entries of a page so far."""

    def __init__(self, delimiter: str, skip: int, limit: int, listings: Listings) -> None:
        self.delimiter = delimiter
        self.listings = listings
        self._skip = skip
        self._limit = limit
        self._rows: list[Row] = []
        self._prefixes: list[str] = []
        self._last = "", ""
        self.truncated = False
        """The page is full, and more entries follow."""

    @property
    def room(self) -> int:
        """The number of entries to read to know whether more exist than fit."""
        return self._limit + 1 - len(self._rows) - len(self._prefixes)

    def take(self, row: Row) -> str:
        """Add an entry, and return the common prefix that rolls it up, if any."""
        if self.room == 1:
            self.truncated = True
            return ""
        key = row[KEY]
        at = key.find(self.delimiter, self._skip) if self.delimiter else -1
        if at < 0:
            self._rows.append(row)
            self._last = key, row[VERSION_ID]
            return ""
        rolled: str = key[: at + len(self.delimiter)]
        self._prefixes.append(rolled)
        self._last = rolled, ""
        return rolled

    def page(self) -> VersionsPage:
        """Return the page with the entries so far."""
        rows, headers = self._rows, []
        if self.listings is LISTINGS_WITH_HEADERS:
            rows, headers = [row[:-1] for row in rows], [row[-1] for row in rows]
        entries = list(map(ListedVersionEntry._make, rows))
        return VersionsPage(entries, self._prefixes, self.truncated, *self._last, headers)


def _time_of(bucket_id: int, key: str, version_id: str) -> Transaction[int | None]:
    """Return the time of the version after which a page continues.

    Returns None when the time can no longer be found.
    """
    if version_id != NULL_VERSION:
        return version_ids.time_of(version_id)
    for statement in (CURRENT_OF, NULL_OF):
        for _, stored_id, _, _, _, modified, *_ in (yield statement, (bucket_id, key)):
            if stored_id == NULL_VERSION:
                return int(modified)
    return None


def _older_of_key(
    listed: _Listed, bucket_id: int, key: str, time: int, *, with_current: bool = False
) -> Transaction[None]:
    """Add the versions of one key that are older than `time`."""
    if with_current:  # the current version is older when newer ones were removed meanwhile
        for row in (yield listed.listings.current, (bucket_id, key, key + "\0", 1)):
            if row[MODIFIED] < time:
                listed.take(row)
    while not listed.truncated:
        limit = min(listed.room, MAX_PAGE_KEYS)
        rows = yield listed.listings.of_key, (bucket_id, key, time, limit)
        for row in rows:
            listed.take(row)
        if len(rows) < limit:
            return
        time = rows[-1][MODIFIED]


def _from_key(listed: _Listed, bucket_id: int, first: str, end: str) -> Transaction[None]:
    """Add all versions of the keys from `first` and before `end`."""
    batch = 1 if listed.delimiter else MAX_PAGE_KEYS
    while first < end and not listed.truncated:
        limit = min(batch, listed.room)
        current = yield listed.listings.current, (bucket_id, first, end, limit)
        others = yield listed.listings.others, (bucket_id, first, end, limit)
        rolled, row = "", None
        # each query returned its first rows, so the first of all are among them
        for row in islice(merge(current, others, key=_order), limit):
            rolled = listed.take(row)
            if rolled:
                break
        if rolled:
            first, batch = successor(rolled), 1
        elif row is None or len(current) + len(others) < limit:
            return
        elif not listed.truncated:
            yield from _older_of_key(listed, bucket_id, row[KEY], row[MODIFIED])
            first, batch = row[KEY] + "\0", min(batch * 2, MAX_PAGE_KEYS)


def _order(row: Row) -> tuple[str, int]:
    return row[KEY], -row[MODIFIED]
