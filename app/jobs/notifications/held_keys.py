"""Keys of a target that rejected their next message: each waits for a doubling pause.

Messages of a key are sent in their order, so later messages of the key wait; other keys go on.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from sluice_s3.app.index.notifications.rows import Message

PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 2.0, 60.0
"""Seconds that a key waits, at first and at most: longer than its target, which meanwhile tries other keys."""
Key = tuple[int, str]


def key_of(message: Message) -> Key:
    """Return the key whose messages are sent in order: bucket and object key."""
    return message.bucket_id, message.key


@dataclass(slots=True)
class HeldKey:
    """A key that waits, with the rejected message."""

    message_id: int
    accepted_before: int
    """Messages that the target had accepted before this one was first sent."""
    error: str = ""
    failures: int = 0
    refusals: int = 0
    """How often the target rejected it for good."""
    due: float = 0.0

    def fail(self, error: str, *, refused: bool) -> None:
        """Note another failure; the key is due again after a pause."""
        self.error = error
        self.due = time.monotonic() + min(PAUSE_SECONDS * 2**self.failures, LONGEST_PAUSE_SECONDS)
        self.failures = min(self.failures + 1, 20)
        self.refusals += refused


class HeldKeys:
    """The waiting keys of one target."""

    def __init__(self) -> None:
        self.held: dict[Key, HeldKey] = {}

    def find_waiting(self) -> set[Key]:
        """Return the keys that are not due yet."""
        now = time.monotonic()
        return {key for key, held in self.held.items() if held.due > now}

    def keep(self, keys: Collection[Key]) -> None:
        """Forget all other keys."""
        self.held = {key: held for key, held in self.held.items() if key in keys}

    def retry_now(self) -> None:
        """Make failed keys due: the target accepts messages again."""
        for held in self.held.values():
            if not held.refusals:
                held.due = 0.0

    @property
    def error(self) -> str:
        """Why the first of the keys waits; empty when none does."""
        return next((held.error for held in self.held.values()), "")
