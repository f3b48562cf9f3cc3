"""What a target is."""

from __future__ import annotations

from typing import Protocol

from app.index.deliveries import Message


class TargetError(Exception):
    """A message was not taken. The text is shown to the operator: no password is in it."""


class Target(Protocol):
    """Somebody who is told of changes. May be called for several messages at once, never for two of one key."""

    async def send(self, message: Message) -> None:
        """Return once the target has it. Raises anything else: then it is sent again later."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
