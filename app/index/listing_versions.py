"""Listing of all versions of a bucket: by key, the newest of a key first.

Current objects and the others have indexes of their own. Both are read from the same position and merged, so that cost
follows the result here too.
"""

from __future__ import annotations

from heapq import merge
from itertools import islice

from sluice_s3.app.index import version_ids
from sluice_s3.app.index.listing import MAX_PAGE_KEYS, start_key, successor
from sluice_s3.app.index.rows import NULL_VERSION
from sluice_s3.app.index.sql.transaction import Row, Transaction
from sluice_s3.app.index.version_rows import ListedVersionEntry, VersionsPage
from sluice_s3.app.index.version_statements import CURRENT_OF, LISTINGS, LISTINGS_WITH_HEADERS, NULL_OF, Listings

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
    """Read a page of all versions, those of a key the newest first, behind that version of `key_marker`.

    Without `version_id` behind all of that key. Prefixes and `headers` are as in `list_current`.
    """
    first, end = start_key(prefix, delimiter, key_marker), successor(prefix)
    listed = _Listed(delimiter, len(prefix), limit, LISTINGS_WITH_HEADERS if headers else LISTINGS)
    if limit <= 0 or first >= end:  # a marker after the prefix: not even the rest of its key is read
        return listed.page()
    if version_id and first == key_marker + "\0":  # else the key is rolled up, or is none of those listed
        time = yield from _time_of(bucket_id, key_marker, version_id)
        if time is None:
            first = key_marker  # it is gone: a client that removes what it listed has removed all that stood before it
        else:
            yield from _rest_of_key(listed, bucket_id, key_marker, time, with_current=True)
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
        """The page is full, and there is more."""

    @property
    def room(self) -> int:
        """How many entries to read to know whether there are more than fit."""
        return self._limit + 1 - len(self._rows) - len(self._prefixes)

    def take(self, row: Row) -> str:
        """Add an entry; return the common prefix that it is rolled up into, if any."""
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
        """Return the page."""
        rows, headers = self._rows, []
        if self.listings is LISTINGS_WITH_HEADERS:
            rows, headers = [row[:-1] for row in rows], [row[-1] for row in rows]
        entries = list(map(ListedVersionEntry._make, rows))
        return VersionsPage(entries, self._prefixes, self.truncated, *self._last, headers)


def _time_of(bucket_id: int, key: str, version_id: str) -> Transaction[int | None]:
    """The time of the version after which a page continues, None when it cannot be known any more."""
    if version_id != NULL_VERSION:
        return version_ids.time_of(version_id)
    for statement in (CURRENT_OF, NULL_OF):
        for _, found, _, _, _, modified, *_ in (yield statement, (bucket_id, key)):
            if found == NULL_VERSION:
                return int(modified)
    return None


def _rest_of_key(
    listed: _Listed, bucket_id: int, key: str, time: int, *, with_current: bool = False
) -> Transaction[None]:
    """Read versions of one key that are older than `time`."""
    if with_current:  # it is among them when newer ones were removed since
        for row in (yield listed.listings.current, (bucket_id, key, key + "\0", 1)):
            if row[MODIFIED] < time:
                listed.take(row)
    while not listed.truncated:
        asked = min(listed.room, MAX_PAGE_KEYS)
        rows = yield listed.listings.of_key, (bucket_id, key, time, asked)
        for row in rows:
            listed.take(row)
        if len(rows) < asked:
            return
        time = rows[-1][MODIFIED]


def _from_key(listed: _Listed, bucket_id: int, first: str, end: str) -> Transaction[None]:
    """Read all versions of the keys from `first` and before `end`."""
    batch = 1 if listed.delimiter else MAX_PAGE_KEYS
    while first < end and not listed.truncated:
        asked = min(batch, listed.room)
        current = yield listed.listings.current, (bucket_id, first, end, asked)
        others = yield listed.listings.others, (bucket_id, first, end, asked)
        rolled, row = "", None
        # each query returned its first rows, so the first of all are among them
        for row in islice(merge(current, others, key=_place), asked):
            rolled = listed.take(row)
            if rolled:
                break
        if rolled:
            first, batch = successor(rolled), 1
        elif row is None or len(current) + len(others) < asked:
            return
        elif not listed.truncated:
            yield from _rest_of_key(listed, bucket_id, row[KEY], row[MODIFIED])
            first, batch = row[KEY] + "\0", min(batch * 2, MAX_PAGE_KEYS)


def _place(row: Row) -> tuple[str, int]:
    return row[KEY], -row[MODIFIED]
