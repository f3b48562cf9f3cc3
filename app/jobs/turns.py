"""Whose turn it is to do what only one process may: told by the kernel on one host, by the index across hosts."""

from __future__ import annotations

import asyncio
import fcntl
import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import monotonic
from typing import Protocol

from app.errors import DomainError
from app.index.base import Index
from app.index.gateways import Lease
from app.index.leased import under

ASK_AGAIN = 2.0
"""Seconds before a lease that another process holds is asked for again, which is all that most processes do."""


class Turn(Protocol):
    """The right to do something that only one process may."""

    async def mine(self) -> bool:
        """Take it if nobody has it; whether this process has it now. Raises DomainError."""
        ...

    def using(self) -> AbstractContextManager[None]:
        """What is committed within fails once the turn is somebody else's."""
        ...

    @property
    def can_leave(self) -> bool:
        """Whether leaving it lets a process of another gateway take it."""
        ...

    async def leave(self) -> None:
        """Let somebody else have it. Whatever was done under it must have ended."""
        ...


class FileTurns:
    """One file lock for everything: the kernel drops it when the process dies."""

    many_hosts = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: int | None = None

    def turn(self, _: str) -> Turn:
        """The turn of that name, which here is the same for all."""
        return self

    async def mine(self) -> bool:
        """See `Turn.mine`."""
        if self._lock is not None:
            return True
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._lock = descriptor
        return True

    def using(self) -> AbstractContextManager[None]:
        """Who has lost the lock is dead."""
        return nullcontext()

    can_leave = False

    async def leave(self) -> None:
        """Nothing: other loops of this process have it, too."""

    async def close(self) -> None:
        """Let another process have it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class LeaseTurns:
    """A lease of the index for each name."""

    many_hosts = True

    def __init__(self, index: Index) -> None:
        self._index = index
        self._made: dict[str, LeaseTurn] = {}

    def turn(self, name: str) -> Turn:
        """The turn of that name."""
        return self._made.setdefault(name, LeaseTurn(self._index, name))

    async def close(self) -> None:
        """Let others have them; those that cannot be told now take them when this process is declared dead."""
        for turn in self._made.values():
            try:
                await turn.leave()
            except DomainError:
                return


class LeaseTurn:
    """One lease. It is asked anew each time, and again in every transaction."""

    can_leave = True

    def __init__(self, index: Index, name: str) -> None:
        self._index = index
        self._name = name
        self._lease: Lease | None = None
        self._asking = asyncio.Lock()
        self._again = 0.0

    async def mine(self) -> bool:
        """See `Turn.mine`."""
        async with self._asking:  # of two loops with this turn: each time that it is taken ends the time before
            if self._lease is not None and not await self._index.holds_lease(self._lease):
                self._lease = None
                return False  # what was done under it must end first
            if self._lease is None and monotonic() >= self._again:
                self._lease = await self._index.take_lease(self._name)
                if self._lease is None:
                    self._again = monotonic() + ASK_AGAIN
            return self._lease is not None

    def using(self) -> AbstractContextManager[None]:
        """See `Turn.using`."""
        return nullcontext() if self._lease is None else under(self._lease)

    async def leave(self) -> None:
        """See `Turn.leave`."""
        lease, self._lease = self._lease, None
        if lease is not None:
            await self._index.leave_lease(lease)


Turns = FileTurns | LeaseTurns
