"""Slots for bodies that are read before authentication: forms, IAM, unsigned requests.

They have a limit of their own, so that they take no slot of authenticated requests. When all slots are taken, the
slowest bodies are refused.
"""

from __future__ import annotations

from sluice_s3.app.s3.errors import SlowDown
from sluice_s3.app.server.http.interfaces import RunningRequest
from sluice_s3.app.settings import Settings

CROWDED_GRACE_SECONDS = 5.0
"""Seconds before the minimum average rate applies to a body, while others wait."""


class UnauthenticatedBodies:
    """The slots of one worker."""

    def __init__(self, settings: Settings) -> None:
        self._limit = settings.max_unauthenticated_bodies
        self._per_client = settings.max_unauthenticated_bodies_per_client
        self._rate = settings.body_min_rate
        self._clients: dict[RunningRequest, str] = {}
        self._count_by_client: dict[str, int] = {}
        self._searched_at = -1.0
        """The time of the last search for slow bodies."""

    def __len__(self) -> int:
        return len(self._clients)

    def take(self, cycle: RunningRequest, now: float) -> bool:
        """Take a slot for a request; False when there is none."""
        client = cycle.request.client
        if self._per_client and self._count_by_client.get(client, 0) >= self._per_client:
            return False
        if len(self._clients) >= self._limit:
            self._end_slow(now)
            if len(self._clients) >= self._limit:
                return False
        self._clients[cycle] = client
        if self._per_client:
            self._count_by_client[client] = self._count_by_client.get(client, 0) + 1
        return True

    def release(self, cycle: RunningRequest) -> None:
        """Release the slot of a request."""
        client = self._clients.pop(cycle, None)
        if client is None or not self._per_client:
            return
        left = self._count_by_client[client] - 1
        if left:
            self._count_by_client[client] = left
        else:
            del self._count_by_client[client]

    def _end_slow(self, now: float) -> None:
        """Refuse the slow bodies. Searches once per sweep, since only sweeps count the time that bodies took."""
        if now == self._searched_at:
            return
        self._searched_at = now
        for cycle in list(self._clients):
            if cycle.is_slow(CROWDED_GRACE_SECONDS, self._rate):
                cycle.refuse(SlowDown())
