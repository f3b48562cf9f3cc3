"""Listing in UTF-8 byte order by range scans that seek past common prefixes.

The cost follows the size of the result. Python compares strings by code point, which is also the order of their UTF-8
bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sluice_s3.app.index.objects.rows import ListedVersion, Page
from sluice_s3.app.index.objects.statements import LIST_CURRENT, LIST_CURRENT_WITH_HEADERS
from sluice_s3.app.index.sql.transaction import Row, Statement, Transaction

END = "\U0010ffff" * 257
"""A text greater than every key, because a key has at most 1024 bytes."""

MAX_PAGE_KEYS = 1000
"""Maximum number of rows to read at a time when a delimiter may end the page earlier."""


def successor(prefix: str) -> str:
    """Return the smallest string greater than every string that starts with `prefix`."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return END
    following = ord(stem[-1]) + 1
    if following == 0xD800:
        following = 0xE000  # UTF-8 has no surrogates
    return stem[:-1] + chr(following)


def common_prefix(key: str, prefix: str, delimiter: str) -> str | None:
    """Return the common prefix that rolls up a key with this prefix, or None."""
    at = key.find(delimiter, len(prefix))
    return None if at < 0 else key[: at + len(delimiter)]


def start_key(prefix: str, delimiter: str, after: str) -> str:
    """Return the smallest key that a page may show."""
    if not after or after < prefix:
        return prefix
    if delimiter and after.startswith(prefix):
        rolled = common_prefix(after, prefix, delimiter)
        if rolled is not None:
            return successor(rolled)
    return after + "\0"


class ScanResult(NamedTuple):
    """The result of a scan: rows and common prefixes, each in order."""

    rows: list[Row]
    prefixes: list[str]
    truncated: bool
    last: str


class KeyOrder(NamedTuple):
    """A statement that reads a bucket's rows in key order.

    It reads from a first key, which is included, to an end, which is not. `key` is the column of the key. Where several
    rows may have the same key, `tie` is the column that orders them, and the statement takes a tie after its first key.
    The first row must exceed both together.
    """

    statement: Statement
    key: int
    tie: int | None = None


CURRENT = KeyOrder(LIST_CURRENT, ListedVersion._fields.index("key"))
CURRENT_WITH_HEADERS = CURRENT._replace(statement=LIST_CURRENT_WITH_HEADERS)


def scan_grouped(
    order: KeyOrder, bucket_id: int, first: tuple[Any, ...], end: str, skip: int, delimiter: str, limit: int
) -> Transaction[ScanResult]:
    """Return up to `limit` rows and common prefixes from `first` on.

    `first` is (key,) or (key, tie). The scan ends when `limit` entries and one more are found. `skip` is the length of
    the prefix, in which no delimiter counts.
    """
    statement, key_at, tie_at = order
    rows: list[Row] = []
    prefixes: list[str] = []
    last = ""
    batch = 1 if delimiter else MAX_PAGE_KEYS
    while first[0] < end:
        batch_limit = min(batch, limit + 1 - len(rows) - len(prefixes))
        batch_rows = yield statement, (bucket_id, *first, end, batch_limit)
        for row in batch_rows:
            if len(rows) + len(prefixes) == limit:
                return ScanResult(rows, prefixes, True, last)
            last = row[key_at]
            at = last.find(delimiter, skip) if delimiter else -1
            if at >= 0:
                last = last[: at + len(delimiter)]
                prefixes.append(last)
                first = (successor(last),) if tie_at is None else (successor(last), -1)
                batch = 1
                break
            rows.append(row)
        else:
            if len(batch_rows) < batch_limit:
                break
            first = (last + "\0",) if tie_at is None else (last, batch_rows[-1][tie_at])
            batch = min(batch * 2, MAX_PAGE_KEYS)
    return ScanResult(rows, prefixes, False, last)


def list_current(
    bucket_id: int, prefix: str, delimiter: str, after: str, limit: int, *, headers: bool = False
) -> Transaction[Page]:
    """Return a page of current objects in UTF-8 byte order.

    Keys and common prefixes are greater than `after`. A common prefix counts as one entry and is found by a seek past
    it. It is omitted when it is not greater than `after`, or when `after` lies under it. In the latter case, if `after`
    equals the prefix or starts with it, the page continues after the whole prefix. `headers` are in no index, so each
    costs a read of its row.
    """
    if headers:
        page = yield from _list_current(CURRENT_WITH_HEADERS, bucket_id, prefix, delimiter, after, limit)
        return page._replace(rows=[row[:-1] for row in page.rows], headers=[row[-1] for row in page.rows])
    return (yield from _list_current(CURRENT, bucket_id, prefix, delimiter, after, limit))


def has_delimiter(
    bucket_id: int, prefix: str, delimiter: str, after: str, limit: int, *, headers: bool = False
) -> bool:
    """Return whether a page of `list_current` takes more than one statement."""
    return bool(delimiter)


def _list_current(
    order: KeyOrder, bucket_id: int, prefix: str, delimiter: str, after: str, limit: int
) -> Transaction[Page]:
    first, end = start_key(prefix, delimiter, after), successor(prefix)
    if limit <= 0 or first >= end:
        return Page([], [], False, "")
    if delimiter:
        page = yield from scan_grouped(order, bucket_id, (first,), end, len(prefix), delimiter, limit)
        return Page(*page)
    rows = yield order.statement, (bucket_id, first, end, limit + 1)
    truncated = len(rows) > limit
    if truncated:
        rows.pop()
    return Page(rows, [], truncated, rows[-1][0] if rows else "")
