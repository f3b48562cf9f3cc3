"""Tickets for downloads: a browser can only GET what it saves, without a body and without headers of a page."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sluice_s3.app.admin.archives.archive import Progress, Selection

TICKET_SECONDS = 300
MAX_TICKETS = 1000
MAX_RUNNING = 4
"""Archives on their way at once."""
MAX_RUNNING_OF_ONE = 2
"""Of one sign-in."""


class TooMany(Exception):
    """So many archives are made already; the message is for the user."""


class Ticket(NamedTuple):
    """What may be fetched once, by whom."""

    owner: str
    bucket: str
    selection: Selection
    name: str
    expires: float
    progress: Progress


class Tickets:
    """Issues tickets, and bounds what is made for them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tickets: dict[str, Ticket] = {}
        self._running: dict[str, int] = {}
        self._redeemed: dict[str, tuple[str, Progress]] = {}
        """Owner and progress by ticket, without the selection, which may be large."""

    def issue(self, owner: str, bucket: str, selection: Selection, name: str) -> str:
        """Return a ticket for its owner. The oldest one of too many ends."""
        now = self._clock()
        for known, ticket in list(self._tickets.items()):
            if ticket.expires > now and len(self._tickets) < MAX_TICKETS:
                break
            del self._tickets[known]
        made = secrets.token_urlsafe(24)
        self._tickets[made] = Ticket(owner, bucket, selection, name, now + TICKET_SECONDS, Progress())
        return made

    def redeem(self, text: str, owner: str) -> Ticket | None:
        """Return a ticket of its owner, which ends with that; None without one."""
        ticket = self._tickets.get(text)
        if ticket is None or ticket.owner != owner or ticket.expires <= self._clock():
            return None
        if len(self._redeemed) >= MAX_TICKETS:
            del self._redeemed[next(iter(self._redeemed))]
        self._redeemed[text] = owner, ticket.progress
        return self._tickets.pop(text)

    def progress(self, text: str, owner: str) -> Progress | None:
        """Return how far the archive of an owner's ticket is; None without a ticket, or if it ended unused."""
        waiting = self._tickets.get(text)
        if waiting is not None and waiting.expires <= self._clock():
            return None
        found = (waiting.owner, waiting.progress) if waiting else self._redeemed.get(text)
        return found[1] if found is not None and found[0] == owner else None

    @contextmanager
    def running(self, owner: str) -> Iterator[None]:
        """Count an archive, or the measure of one, while it runs. Raises TooMany."""
        if sum(self._running.values()) >= MAX_RUNNING:
            raise TooMany("The gateway makes as many archives as it may: try again when one is done.")
        if self._running.get(owner, 0) >= MAX_RUNNING_OF_ONE:
            raise TooMany("Two archives of yours are being made: try again when one is done.")
        self._running[owner] = self._running.get(owner, 0) + 1
        try:
            yield
        finally:
            self._running[owner] -= 1
            if not self._running[owner]:
                del self._running[owner]
