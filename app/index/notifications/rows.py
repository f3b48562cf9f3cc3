"""Messages of changes, and the notes about their targets."""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """A message to send.

    Messages of one key are sent in the order of their `id`. `at` is in milliseconds since the epoch.
    """

    id: int
    bucket_id: int
    key: str
    at: int
    message: str


class NewMessage(NamedTuple):
    """A message before it is written to the outbox."""

    target: str
    bucket_id: int
    key: str
    message: str


class Backlog(NamedTuple):
    """The number of messages that wait for a target.

    `oldest` is when the oldest was written, in milliseconds since the epoch.
    """

    target: str
    messages: int
    oldest: int


def note_of(target: str) -> str:
    """Return the name of the note with a target's last error.

    The note is a JSON object of `error` and `at` (milliseconds since the epoch), or empty.
    """
    return f"notify:{target}"


def delivered_note(target: str) -> str:
    """Return the name of the note with a target's last delivery.

    The note is a JSON object of `at` (milliseconds since the epoch) and `messages` (accepted at once), or empty.
    """
    return f"notify-delivered:{target}"


def given_up_note(target: str) -> str:
    """Return the name of the note that counts the dropped messages of a target.

    The note is a JSON object with the names in `REASONS`, or empty.
    """
    return f"notify-given-up:{target}"


REFUSED, EXPIRED = "refused", "expired"
REASONS = (REFUSED, EXPIRED)
"""Reasons to drop a message: its target refused it for good, or it was too old."""
