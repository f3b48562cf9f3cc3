"""Who pays what, when: a call, bytes written, sent, synced and read, each until its moment has come."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from loadtests.mounts.pace import Pipe, wait_until
from loadtests.mounts.profiles import Profile

SLACK_SECONDS = 0.02
"""Who goes on within this time has lost none of it: what a program and FUSE take between two calls of a stream."""
OWN_SECONDS = 0.0001
"""What Linux and libfuse take for a call before and after us: deducted from what it costs."""
NEAR = 1 << 20
"""A read that begins as near to the last one's end goes on: Linux asks for several at once."""


@dataclass
class Stream:
    """Bytes of one file on their way."""

    written: float = 0
    """Since the last sync."""
    sent: float = 0
    copying: float = 0.0
    """Seconds that the mount itself took to keep what is not sent: they count as sending."""
    at: float = 0.0
    read_to: int = -1
    read_at: float = 0.0


class Costs:
    """A profile at work, for many threads. Every method returns when what it is about would be done; `started` is the
    moment (`time.perf_counter()`) when its call came in."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._calls = {kind: took / 1000 for kind, took in profile.calls.items()}
        self.writing = Pipe(profile.write_rate, profile.credits)
        self.reading = Pipe(profile.reads_rate)
        self._random = random.Random(1)

    def call(self, kind: str, started: float) -> None:
        """A call of this kind."""
        took = self._calls.get(kind)
        if took:
            wait_until(started + took * self._chance() - OWN_SECONDS)

    def wrote(self, stream: Stream, count: int, started: float) -> None:
        """Bytes were handed to the mount."""
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
            # the others of a memory that all share wait where it is full
            wait_until(self.writing.reserve(count, started) - profile.ahead / profile.write_rate)

    def synced(self, stream: Stream, started: float) -> None:
        """All that was written is to be durable."""
        if not self.profile.sending:
            durable = max(started, self.writing.free_at()) if stream.written else started
            stream.written = 0
            self.call("sync", durable)
            return
        self.call("sync", started)
        upto = stream.written
        if upto > stream.sent:
            self._send(stream, upto, max(stream.at, time.perf_counter()))
        # what others wrote meanwhile is the next sync's
        stream.written = max(0, stream.written - upto)
        stream.sent = 0

    def closed(self, stream: Stream, started: float) -> None:
        """close(2)."""
        self.call("close", started)
        if self.profile.close_sends and stream.written:
            self.synced(stream, time.perf_counter())

    def was_read(self, stream: Stream, offset: int, count: int, started: float) -> None:
        """Bytes were asked for that Linux did not remember."""
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
        """Seconds that it takes one writer alone to send so many bytes."""
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
        """What the writer alone would wait for beyond the bare bytes is waited for first, then the bytes share."""
        count = upto - stream.sent
        alone = self.takes(upto) - self.takes(stream.sent)
        bare = count / self.writing.rate if self.writing.rate else 0.0
        at += max(0.0, max(0.0, alone - bare) * self._chance() - stream.copying)
        stream.sent, stream.copying = upto, 0.0
        stream.at = self.writing.move(int(count), at)
        wait_until(stream.at)

    def _chance(self) -> float:
        """A factor of mean 1."""
        spread = self.profile.spread
        if not spread:
            return 1.0
        shape = 1 / spread**2
        return self._random.gammavariate(shape, 1 / shape)


def _going_on(at: float, started: float) -> float:
    """When the next piece of a stream begins: where the last ended, unless that is long ago."""
    return at if at > started - SLACK_SECONDS else started
