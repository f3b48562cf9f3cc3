"""Rows to deliver: messages of changes, and lines of access logs."""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """A message to send. Those of one key are sent in the order of their `id`; `at` is milliseconds."""

    id: int
    bucket_id: int
    key: str
    at: int
    message: str


class NewMessage(NamedTuple):
    """A message before it is written."""

    target: str
    bucket_id: int
    key: str
    message: str


class Backlog(NamedTuple):
    """The messages that wait for a target; `oldest` is when the oldest was written, in milliseconds."""

    target: str
    messages: int
    oldest: int


class Lines(NamedTuple):
    """The log lines that a process collected for a bucket in a while. Each ends with a newline."""

    id: int
    at: int
    lines: str


class Waiting(NamedTuple):
    """A bucket with lines that wait; `oldest` is milliseconds."""

    bucket_id: int
    bucket: str
    oldest: int


def note_of(target: str) -> str:
    """Return the name of the note with a target's last error.

    The note is a JSON object of `error` and `at` (milliseconds), or empty.
    """
    return f"notify:{target}"


def given_up_note(target: str) -> str:
    """Return the name of the note that counts the dropped messages of a target.

    The note is a JSON object of REASONS, or empty.
    """
    return f"notify-given-up:{target}"


REFUSED, EXPIRED = "refused", "expired"
REASONS = (REFUSED, EXPIRED)
"""Why a message is dropped: its target refused it for good, or it was too old."""
