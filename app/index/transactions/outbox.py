"""Messages that are to be sent, and lines of access logs on their way to an object."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sluice_s3.app.index.lifecycle_scan import BUCKETS
from sluice_s3.app.index.outbox_rows import Backlog, Lines, Message, NewMessage, Waiting
from sluice_s3.app.index.outbox_statements import (
    ADD_LINES,
    ADD_MESSAGE,
    BACKLOG,
    LINES,
    MESSAGES,
    REMOVE_LINES,
    REMOVE_MESSAGE,
    WAITING,
)
from sluice_s3.app.index.rows import Bucket
from sluice_s3.app.index.sql.transaction import Draw, Transaction, now_ms
from sluice_s3.app.index.transactions.buckets import configure_bucket

PAGE = 1024


def add_messages(messages: Sequence[NewMessage]) -> Transaction[None]:
    """Write messages down, in this order."""
    if not messages:
        return
    first = yield Draw(len(messages))
    at = now_ms()
    yield (
        ADD_MESSAGE,
        [(number, one.target, one.bucket_id, one.key, at, one.message) for number, one in enumerate(messages, first)],
    )


def configure_messages(bucket_id: int, name: str, value: Any, messages: Sequence[NewMessage]) -> Transaction[None]:
    """Set one of the bucket's settings, and write messages down. Raises NoSuchBucket."""
    yield from configure_bucket(bucket_id, name, value)
    yield from add_messages(messages)


def configured_buckets(mark: str) -> Transaction[list[Bucket]]:
    """Read the buckets in whose settings `mark` stands. Reads all that have some."""
    found = [Bucket._make(row) for row in (yield BUCKETS.given())]
    return [bucket for bucket in found if mark in bucket.settings]


def messages(target: str, limit: int) -> Transaction[list[Message]]:
    """The oldest that wait for a target."""
    return [Message._make(row) for row in (yield MESSAGES, (target, 0, limit))]


def messages_without(target: str, limit: int, keys: Collection[tuple[int, str]]) -> Transaction[list[Message]]:
    """Read the oldest that wait for a target, but for those of some keys (bucket and key).

    It takes a page at a time, in one state of the index: in another one there may be an older message of a key
    behind the place that was come to, because numbers are not committed in their order.
    """
    found: list[Message] = []
    after = 0
    while len(found) < limit:
        page = [Message._make(row) for row in (yield MESSAGES, (target, after, PAGE))]
        found += [message for message in page if (message.bucket_id, message.key) not in keys]
        if len(page) < PAGE:
            break
        after = page[-1].id
    return found[:limit]


def forget_messages(ids: Sequence[int]) -> Transaction[None]:
    """Those that were sent."""
    yield REMOVE_MESSAGE, [(number,) for number in ids]


def backlog() -> Transaction[list[Backlog]]:
    """Count what waits, by target. Reads all of it."""
    return [Backlog._make(row) for row in (yield BACKLOG, ())]


def add_log_lines(collected: Sequence[tuple[int, str, str]]) -> Transaction[None]:
    """Lines of access logs: of each bucket its id, its name and the lines."""
    first = yield Draw(len(collected))
    at = now_ms()
    yield (
        ADD_LINES,
        [(number, bucket_id, name, at, lines) for number, (bucket_id, name, lines) in enumerate(collected, first)],
    )


def waiting_logs() -> Transaction[list[Waiting]]:
    """Buckets with lines that wait."""
    return [Waiting._make(row) for row in (yield WAITING, ())]


def log_lines(bucket_id: int, limit: int) -> Transaction[list[Lines]]:
    """The oldest that wait of a bucket."""
    return [Lines._make(row) for row in (yield LINES, (bucket_id, limit))]


def forget_log_lines(ids: Sequence[int]) -> Transaction[None]:
    """Those that were written."""
    yield REMOVE_LINES, [(number,) for number in ids]
