"""The outbox of messages, and the lines of access logs that wait to become objects."""

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
    """Add messages to the outbox, in this order."""
    if not messages:
        return
    first = yield Draw(len(messages))
    at = now_ms()
    yield (
        ADD_MESSAGE,
        [(number, one.target, one.bucket_id, one.key, at, one.message) for number, one in enumerate(messages, first)],
    )


def configure_messages(bucket_id: int, name: str, value: Any, messages: Sequence[NewMessage]) -> Transaction[None]:
    """Set one setting of a bucket, and add messages to the outbox.

    Raises NoSuchBucket.
    """
    yield from configure_bucket(bucket_id, name, value)
    yield from add_messages(messages)


def configured_buckets(mark: str) -> Transaction[list[Bucket]]:
    """Return the buckets whose settings contain `mark`.

    Reads all buckets with settings.
    """
    found = [Bucket._make(row) for row in (yield BUCKETS.bind())]
    return [bucket for bucket in found if mark in bucket.settings]


def messages(target: str, limit: int) -> Transaction[list[Message]]:
    """Return the oldest messages for a target."""
    return [Message._make(row) for row in (yield MESSAGES, (target, 0, limit))]


def messages_without(target: str, limit: int, keys: Collection[tuple[int, str]]) -> Transaction[list[Message]]:
    """Return the oldest messages for a target, without those of some keys (bucket and key).

    It reads page by page, in one snapshot of the index. Across snapshots, an older message of a key could appear behind
    the position reached, because numbers are not committed in order.
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
    """Remove messages that were sent."""
    yield REMOVE_MESSAGE, [(number,) for number in ids]


def backlog() -> Transaction[list[Backlog]]:
    """Return the number of waiting messages by target.

    Reads the whole outbox.
    """
    return [Backlog._make(row) for row in (yield BACKLOG, ())]


def add_log_lines(collected: Sequence[tuple[int, str, str]]) -> Transaction[None]:
    """Add lines of access logs: for each bucket its id, its name and the lines."""
    first = yield Draw(len(collected))
    at = now_ms()
    yield (
        ADD_LINES,
        [(number, bucket_id, name, at, lines) for number, (bucket_id, name, lines) in enumerate(collected, first)],
    )


def waiting_logs() -> Transaction[list[Waiting]]:
    """Return the buckets with waiting lines."""
    return [Waiting._make(row) for row in (yield WAITING, ())]


def log_lines(bucket_id: int, limit: int) -> Transaction[list[Lines]]:
    """Return the oldest waiting lines of a bucket."""
    return [Lines._make(row) for row in (yield LINES, (bucket_id, limit))]


def forget_log_lines(ids: Sequence[int]) -> Transaction[None]:
    """Remove lines that were written."""
    yield REMOVE_LINES, [(number,) for number in ids]
