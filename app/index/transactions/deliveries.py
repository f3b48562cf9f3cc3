"""Messages that are to be sent, and lines of access logs on their way to an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.index.deliveries import Backlog, Lines, Message, NewMessage, Waiting
from app.index.delivery_statements import (
    ADD_LINES,
    ADD_MESSAGE,
    BACKLOG,
    LINES,
    MESSAGES,
    REMOVE_LINES,
    REMOVE_MESSAGE,
    WAITING,
)
from app.index.lifecycle import BUCKETS
from app.index.rows import Bucket
from app.index.steps import Draw, Transaction, now_ms
from app.index.transactions.bucket import configure_bucket


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
    """Set one of the bucket's settings, and write messages down."""
    yield from configure_bucket(bucket_id, name, value)
    yield from add_messages(messages)


def configured_buckets(mark: str) -> Transaction[list[Bucket]]:
    """Buckets in whose settings `mark` stands."""
    found = [Bucket._make(row) for row in (yield BUCKETS.given())]
    return [bucket for bucket in found if mark in bucket.settings]


def messages(target: str, limit: int) -> Transaction[list[Message]]:
    """The oldest that wait for a target."""
    return [Message._make(row) for row in (yield MESSAGES, (target, limit))]


def forget_messages(ids: Sequence[int]) -> Transaction[None]:
    """Those that were sent."""
    yield REMOVE_MESSAGE, [(number,) for number in ids]


def backlog() -> Transaction[list[Backlog]]:
    """What waits, by target."""
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
