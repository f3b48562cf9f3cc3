"""The part of the index seam for what is to be delivered: messages of changes, and lines of access logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from app.index.rows import Bucket


class Message(NamedTuple):
    """A message that is to be sent. Those of one key are sent in the order of their `id`; `at` is milliseconds."""

    id: int
    bucket_id: int
    key: str
    at: int
    message: str


class NewMessage(NamedTuple):
    """A message before it is written down."""

    target: str
    bucket_id: int
    key: str
    message: str


class Backlog(NamedTuple):
    """What waits for a target; `oldest` is when its oldest message was written, in milliseconds."""

    target: str
    messages: int
    oldest: int


class Lines(NamedTuple):
    """What a process collected for a bucket's log in a while. Each line ends by a newline."""

    id: int
    at: int
    lines: str


class Waiting(NamedTuple):
    """A bucket with lines that wait; `oldest` is milliseconds."""

    bucket_id: int
    bucket: str
    oldest: int


def note_of(target: str) -> str:
    """The note that says what a target took amiss: a JSON object of `error` and `at` (milliseconds), or empty."""
    return f"notify:{target}"


class Deliveries(Protocol):
    """See `app.index.base.Index`, which this is a part of. Changes write their messages by `telling`."""

    async def configure_messages(self, bucket_id: int, name: str, value: Any, messages: Sequence[NewMessage]) -> None:
        """`configure_bucket` together with messages. Raises NoSuchBucket."""
        ...

    async def configured_buckets(self, mark: str) -> list[Bucket]:
        """Buckets in whose settings `mark` stands. Reads all that have some."""
        ...

    async def messages(self, target: str, limit: int) -> list[Message]:
        """The oldest that wait for a target."""
        ...

    async def forget_messages(self, ids: Sequence[int]) -> None: ...
    async def backlog(self) -> list[Backlog]:
        """What waits, by target. Reads all of it."""
        ...

    async def add_log_lines(self, collected: Sequence[tuple[int, str, str]]) -> None:
        """Add lines of access logs: of each bucket its id, its name and the lines."""
        ...

    async def waiting_logs(self) -> list[Waiting]: ...
    async def log_lines(self, bucket_id: int, limit: int) -> list[Lines]:
        """The oldest that wait of a bucket."""
        ...

    async def forget_log_lines(self, ids: Sequence[int]) -> None: ...
