"""When received bytes arrived, as the kernel stamps them: Linux, without TLS.

The stamps are of the wall clock, and durations of `time.perf_counter`: both are read at the same moment to convert one
into the other. On a busy machine this process can be stopped between the two reads, and an answer would seem to have
come sooner by that time, so they are read again until they are close.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

SO_TIMESTAMPNS_NEW = 64
"""SO_TIMESTAMPNS_NEW of Linux (asm-generic/socket.h), which `socket` does not name."""
CLOSE_SECONDS = 20e-6
"""Within so long both clocks are read by a process that is not stopped meanwhile."""
MAX_READS = 10
_STAMP = struct.Struct("=qq")
_ANCILLARY = socket.CMSG_SPACE(_STAMP.size)


def stamp_arrivals(wire: socket.socket) -> bool:
    """Ask the kernel to stamp received bytes. Return whether it will."""
    if sys.platform != "linux":
        return False
    try:
        wire.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS_NEW, 1)
    except OSError:
        return False
    return True


def receive_stamped(wire: socket.socket, buffer: memoryview, flags: int) -> tuple[int, float]:
    """Receive bytes; return how many, and when the last of them arrived (perf_counter)."""
    count, ancillary, _, _ = wire.recvmsg_into([buffer], _ANCILLARY, flags)
    if not ancillary:
        return count, time.perf_counter()
    seconds, nanoseconds = _STAMP.unpack(ancillary[0][2])
    now, wall = _read_clocks()
    return count, now - max(0, wall - seconds * 10**9 - nanoseconds) / 1e9


def _read_clocks() -> tuple[float, int]:
    """Return `time.perf_counter` and `time.time_ns` of one moment, or the closest that were read."""
    closest = (float("inf"), 0.0, 0)
    for _ in range(MAX_READS):
        before, wall, after = time.perf_counter(), time.time_ns(), time.perf_counter()
        closest = min(closest, (after - before, before, wall))
        if closest[0] <= CLOSE_SECONDS:
            break
    return closest[1:]
