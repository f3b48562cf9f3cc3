"""The interface of a target."""

from __future__ import annotations

from typing import Protocol

from sluice_s3.app.index.notifications.rows import Message


class TargetError(Exception):
    """A message was not accepted.

    Operators see the text, so it contains no password.
    """


class MessageRefused(TargetError):
    """The target will never accept this message; it may accept others."""


class Target(Protocol):
    """A receiver of event notifications.

    Several messages may be sent concurrently, never two of one key.
    """

    async def send(self, message: Message) -> None:
        """Send a message and wait until the target has it.

        After any error it is sent again later.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
