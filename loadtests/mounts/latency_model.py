"""The costs of each call, and of bytes written, sent, synced and read.

Each method waits until its call would be done.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from sluice_s3.loadtests.mounts.bandwidth import Pipe, wait_until
from sluice_s3.loadtests.mounts.profiles import Profile

SLACK_SECONDS = 0.02
"""A stream that goes on within this time has lost none of it.

A program and FUSE take as long between two calls of a stream.
"""
OWN_SECONDS = 0.0001
"""What Linux and libfuse take for a call before and after us: deducted from its cost."""
NEAR = 1 << 20
"""A read that begins this near to the last one's end continues it.

Linux sends several reads at once.
"""


@dataclass
class Stream:
    """The bytes of one file on their way."""

    written: float = 0
    """Bytes since the last sync."""
    sent: float = 0
    copying: float = 0.0
    """Seconds that the mount itself took to store unsent bytes: they count as sending."""
    at: float = 0.0
    read_to: int = -1
    read_at: float = 0.0


class Costs:
    """Applies a profile's costs. Thread-safe.

    Every method returns when its operation would be done. `started` is the moment (`time.perf_counter()`) when the call
    came in.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._calls = {kind: took / 1000 for kind, took in profile.calls.items()}
        self.writing = Pipe(profile.write_rate, profile.credits)
        self.reading = Pipe(profile.reads_rate)
        self._random = random.Random(1)

    def call(self, kind: str, started: float) -> None:
        """Charge a call of this kind."""
        took = self._calls.get(kind)
        if took:
            wait_until(started + took * self._chance() - OWN_SECONDS)

    def wrote(self, stream: Stream, count: int, started: float) -> None:
        """Charge bytes that were handed to the mount."""
        self.call("write", started)
        profile = self.profile
        stream.written += count
        if profile.sending:
            excess = stream.written - profile.ahead
            if excess > stream.sent:
                self._send(stream, excess, _going_on(stream.at, started))
            else:
                stream.copying += time.perf_counter() - started
            return
        if profile.copy_rate:
            stream.at = _going_on(stream.at, started) + count / profile.copy_rate
            wait_until(stream.at)
        if profile.write_rate:
            # with one memory for all, the others wait here when it is full
            wait_until(self.writing.reserve(count, started) - profile.ahead / profile.write_rate)

    def synced(self, stream: Stream, started: float) -> None:
        """Charge a sync of all that was written."""
        if not self.profile.sending:
            durable = max(started, self.writing.free_at()) if stream.written else started
            stream.written = 0
            self.call("sync", durable)
            return
        self.call("sync", started)
        upto = stream.written
        if upto > stream.sent:
            self._send(stream, upto, max(stream.at, time.perf_counter()))
        # what others wrote meanwhile belongs to the next sync
        stream.written = max(0, stream.written - upto)
        stream.sent = 0

    def closed(self, stream: Stream, started: float) -> None:
        """Charge a close(2)."""
        self.call("close", started)
        if self.profile.close_sends and stream.written:
            self.synced(stream, time.perf_counter())

    def was_read(self, stream: Stream, offset: int, count: int, started: float) -> None:
        """Charge bytes that Linux had not cached."""
        goes_on = stream.read_to >= 0 and abs(offset - stream.read_to) <= NEAR
        if not goes_on:
            self.call("read", started)
            stream.read_at = time.perf_counter()
        at = _going_on(stream.read_at, started)
        stream.read_to = offset + count
        if self.profile.read_rate:
            at += count / self.profile.read_rate
            stream.read_at = at
        wait_until(max(at, self.reading.move(count, min(at, started))) if self.profile.reads_rate else at)

    def takes(self, count: float) -> float:
        """Return the seconds that one writer alone takes to send these bytes."""
        points = self.profile.sending
        if count <= 0:
            return 0.0
        below = (0.0, points[0][1])
        for above in points:
            if count <= above[0]:
                share = (count - below[0]) / (above[0] - below[0])
                return (below[1] + share * (above[1] - below[1])) / 1000
            below = above
        beyond = (count - below[0]) / self.profile.write_rate if self.profile.write_rate else 0.0
        return below[1] / 1000 + beyond

    def _send(self, stream: Stream, upto: float, at: float) -> None:
        """Send bytes.

        First wait for what a single writer takes beyond the bare bytes; then the bytes share the pipe.
        """
        count = upto - stream.sent
        alone = self.takes(upto) - self.takes(stream.sent)
        bare = count / self.writing.rate if self.writing.rate else 0.0
        at += max(0.0, max(0.0, alone - bare) * self._chance() - stream.copying)
        stream.sent, stream.copying = upto, 0.0
        stream.at = self.writing.move(int(count), at)
        wait_until(stream.at)

    def _chance(self) -> float:
        """Return a random factor of mean 1."""
        spread = self.profile.spread
        if not spread:
            return 1.0
        shape = 1 / spread**2
        return self._random.gammavariate(shape, 1 / shape)


def _going_on(at: float, started: float) -> float:
    """Return when the next piece of a stream begins: at the end of the last one, unless that is long ago."""
    return at if at > started - SLACK_SECONDS else started
