"""The outbox: messages of changes, until they are sent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sluice_s3.app.index.buckets.transactions import configure_bucket
from sluice_s3.app.index.meta.statements import SET_META
from sluice_s3.app.index.notifications.rows import Backlog, Message, NewMessage
from sluice_s3.app.index.notifications.statements import ADD_MESSAGE, BACKLOG, MESSAGES, REMOVE_MESSAGE
from sluice_s3.app.index.sql.transaction import Draw, Transaction, now_ms

PAGE = 1024


def add_messages(messages: Sequence[NewMessage]) -> Transaction[None]:
    """Add messages to the outbox, in this order."""
    if not messages:
        return
    first = yield Draw(len(messages))
    at = now_ms()
    yield (
        ADD_MESSAGE,
        [
            (number, message.target, message.bucket_id, message.key, at, message.message)
            for number, message in enumerate(messages, first)
        ],
    )


def configure_messages(bucket_id: int, name: str, value: Any, messages: Sequence[NewMessage]) -> Transaction[None]:
    """Set one setting of a bucket, and add messages to the outbox.

    Raises NoSuchBucket.
    """
    yield from configure_bucket(bucket_id, name, value)
    yield from add_messages(messages)


def messages(target: str, limit: int) -> Transaction[list[Message]]:
    """Return the oldest messages for a target."""
    return [Message._make(row) for row in (yield MESSAGES, (target, 0, limit))]


def messages_without(target: str, limit: int, keys: Collection[tuple[int, str]]) -> Transaction[list[Message]]:
    """Return the oldest messages for a target, without those of some keys (bucket and key).

    It reads page by page, in one snapshot of the index. Across snapshots, an older message of a key could appear behind
    the position reached, because numbers are not committed in order.
    """
    selected: list[Message] = []
    after = 0
    while len(selected) < limit:
        page = [Message._make(row) for row in (yield MESSAGES, (target, after, PAGE))]
        selected += [message for message in page if (message.bucket_id, message.key) not in keys]
        if len(page) < PAGE:
            break
        after = page[-1].id
    return selected[:limit]


def forget_messages(ids: Sequence[int], note: tuple[str, str] | None = None) -> Transaction[None]:
    """Remove messages that were sent or given up. `note` is the name and text of a note to set with it."""
    yield REMOVE_MESSAGE, [(number,) for number in ids]
    if note is not None:
        yield SET_META, note


def backlog() -> Transaction[list[Backlog]]:
    """Return the number of waiting messages by target.

    Reads the whole outbox.
    """
    return [Backlog._make(row) for row in (yield BACKLOG, ())]
