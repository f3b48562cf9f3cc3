"""Listing of all versions of a bucket: by key, of one key the newest first.

Current objects and the others have indexes of their own. Both are read from the same place on and merged, so that cost
follows the answer here too.
"""

from __future__ import annotations

from heapq import merge
from itertools import islice

from app.index import version_ids
from app.index.listing import LARGEST, begin, successor
from app.index.rows import NULL_VERSION
from app.index.steps import Row, Transaction
from app.index.version_rows import ListedAny, VersionsPage
from app.index.version_statements import CURRENT_OF, LISTINGS, LISTINGS_WITH_HEADERS, NULL_OF, Listings

KEY, MODIFIED, VERSION_ID = map(ListedAny._fields.index, ("key", "modified", "version_id"))


def page(
    bucket_id: int, prefix: str, delimiter: str, marker: tuple[str, str], limit: int, *, headers: bool = False
) -> Transaction[VersionsPage]:
    """A page behind a version (key, version id) or, when that is empty, behind all of a key; see `list_current`."""
    key, version_id = marker
    first, end = begin(prefix, delimiter, key), successor(prefix)
    listed = _Listed(delimiter, len(prefix), limit, LISTINGS_WITH_HEADERS if headers else LISTINGS)
    if limit <= 0 or first >= end:  # a marker behind the prefix: not even the rest of its key is asked for
        return listed.page()
    if version_id and first == key + "\0":  # else the key is rolled up, or is none of those that are listed
        time = yield from _time_of(bucket_id, key, version_id)
        if time is None:
            first = key  # it is gone: whoever removes what he is shown has removed all that stood before it
        else:
            yield from _rest_of_key(listed, bucket_id, key, time, with_current=True)
    yield from _from_key(listed, bucket_id, first, end)
    return listed.page()


class _Listed:
    """What a page has so far."""

    def __init__(self, delimiter: str, skip: int, limit: int, listings: Listings) -> None:
        self.delimiter = delimiter
        self.listings = listings
        self._skip = skip
        self._limit = limit
        self._rows: list[Row] = []
        self._prefixes: list[str] = []
        self._last = "", ""
        self.truncated = False
        """It is full, and there is more."""

    @property
    def room(self) -> int:
        """How many entries must be read to know whether there are more than have room."""
        return self._limit + 1 - len(self._rows) - len(self._prefixes)

    def take(self, row: Row) -> str:
        """Add an entry; the common prefix that it is rolled up into, if it is."""
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
        """The page."""
        rows, headers = self._rows, []
        if self.listings is LISTINGS_WITH_HEADERS:
            rows, headers = [row[:-1] for row in rows], [row[-1] for row in rows]
        entries = list(map(ListedAny._make, rows))
        return VersionsPage(entries, self._prefixes, self.truncated, *self._last, headers)


def _time_of(bucket_id: int, key: str, version_id: str) -> Transaction[int | None]:
    """The time of the version behind which a page goes on, None when that cannot be told any more."""
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
    """Versions of one key that are older than `time`."""
    if with_current:  # it is among them when newer ones were removed since
        for row in (yield listed.listings.current, (bucket_id, key, key + "\0", 1)):
            if row[MODIFIED] < time:
                listed.take(row)
    while not listed.truncated:
        asked = min(listed.room, LARGEST)
        rows = yield listed.listings.of_key, (bucket_id, key, time, asked)
        for row in rows:
            listed.take(row)
        if len(rows) < asked:
            return
        time = rows[-1][MODIFIED]


def _from_key(listed: _Listed, bucket_id: int, first: str, end: str) -> Transaction[None]:
    """All versions of the keys from `first` on and before `end`."""
    batch = 1 if listed.delimiter else LARGEST
    while first < end and not listed.truncated:
        asked = min(batch, listed.room)
        current = yield listed.listings.current, (bucket_id, first, end, asked)
        others = yield listed.listings.others, (bucket_id, first, end, asked)
        rolled, row = "", None
        # each gave its first ones, and so the first of all are among them
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
            first, batch = row[KEY] + "\0", min(batch * 2, LARGEST)


def _place(row: Row) -> tuple[str, int]:
    return row[KEY], -row[MODIFIED]
