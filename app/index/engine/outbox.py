"""Change events: messages that are written in the transaction of the change.

Inside `emit_events(builder)`, every transaction also writes its change events to the outbox. The builder is a context
variable, so tasks that are started inside inherit it. An `EventBuilder` makes the messages of a change. A failed change
writes none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from sluice_s3.app.eager_task import enter_task
from sluice_s3.app.index.notifications.rows import NewMessage
from sluice_s3.app.index.notifications.transactions import add_messages
from sluice_s3.app.index.sql.transaction import Draw, Transaction

PUT, DELETED, MARKED, EXPIRED, RENEWED = "put", "deleted", "marked", "expired", "renewed"
STORAGE_CLASS_CHANGED = "reclassed"
"""Kinds of changes. PUT: a new version. DELETED: a removed version, also where no versions are kept. MARKED: a new
delete marker. EXPIRED: a current object that expired, by either of the two. RENEWED: other headers of a version, whose
new number is `seq`. STORAGE_CLASS_CHANGED: another storage class of a version."""


class ObjectChange(NamedTuple):
    """The change of one key.

    `seq` is the row's number. In an event it is greater than that of any earlier change of the key. `size` (bytes) and
    `etag` are those of a new version. `modified` is in milliseconds since the epoch.
    """

    kind: str
    bucket_id: int
    key: str
    seq: int
    version_id: str
    modified: int
    size: int = 0
    etag: str = ""
    storage_class: str = ""
    """The new storage class, for `STORAGE_CLASS_CHANGED`."""


class EventBuilder(Protocol):
    """A builder of the messages of changes.

    Runs in the thread that commits, and must do no more.
    """

    def messages(self, change: ObjectChange) -> Sequence[NewMessage]:
        """Return the messages to send for a change."""
        ...


BUILDER: ContextVar[EventBuilder | None] = ContextVar("builder", default=None)
"""The builder for changes that begin now."""


@asynccontextmanager
async def emit_events(builder: EventBuilder | None) -> AsyncIterator[None]:
    """Write the change events of changes that begin inside, in a task: only there a context variable is private."""
    await enter_task()
    token = BUILDER.set(builder)
    try:
        yield
    finally:
        BUILDER.reset(token)


class OutboxTransaction:
    """A transaction that also writes its change events.

    `changes` is the function without them.
    """

    __slots__ = ("_builder", "_changes_of", "changes")

    def __init__(
        self,
        changes: Callable[..., Transaction[Any]],
        changes_of: Callable[..., list[ObjectChange]],
        builder: EventBuilder,
    ) -> None:
        self.changes = changes
        self._changes_of = changes_of
        self._builder = builder

    def __call__(self, *arguments: Any) -> Transaction[Any]:
        """Run the transaction."""
        result = yield from self.changes(*arguments)
        changes = self._changes_of(result, *arguments)
        if changes:
            first = yield Draw(len(changes))  # numbers after those of all earlier events of these keys
            with_outbox = [change._replace(seq=seq) for seq, change in enumerate(changes, first)]
            yield from add_messages([message for change in with_outbox for message in self._builder.messages(change)])
        return result
