"""The rates of requests that the processes of a server share; see `app.s3.request_rates`."""

from __future__ import annotations

import time
from pathlib import Path

import xxhash

from sluice_s3.app.server.shared_memory.oldest_requests import map_shared_file

SLOTS = 8192
PROBES = 4
"""Slots from a caller's own on; one of them holds its rate."""
BURST_SECONDS = 1.0
"""Seconds for which a caller may be ahead of its rate."""
ROUNDING_SECONDS = 1e-6
"""What adding up the seconds between requests may err by."""
_WORD = 8


class RequestRates:
    """One file mapped by all processes: callers, and the times at which they are as far as their rate allows.

    That is the generic cell rate algorithm, which needs one number a caller (ITU-T I.371). The words are doubles. Two
    processes that write one at the same moment count one request of the two. A caller whose slots are all taken by
    others that are busy shares the first one.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Raise OSError when the file does not exist."""
        rows = SLOTS + PROBES
        shared = memoryview(map_shared_file(path, 2 * rows * _WORD, create=create)).cast("d")
        self._callers, self._due = shared[:rows], shared[rows:]

    def admit(self, caller: str, per_second: int) -> bool:
        """Count a request; return False, and count nothing, when the caller is over its rate."""
        now = time.monotonic()  # the same in all processes of a machine
        number = xxhash.xxh3_64_intdigest(caller.encode())
        at = self._find(float((number >> 12) + 1), number % SLOTS, now)
        due = max(now, self._due[at]) + 1 / per_second
        if due > now + BURST_SECONDS + ROUNDING_SECONDS:
            return False
        self._due[at] = due
        return True

    def _find(self, caller: float, first: int, now: float) -> int:
        """Return the slot of a caller, taken for it if none is."""
        slots = range(first, first + PROBES)
        for at in slots:
            if self._callers[at] == caller:
                return at
        for at in slots:
            if self._due[at] <= now:  # its caller would be as one that never came
                self._callers[at] = caller
                return at
        return first
