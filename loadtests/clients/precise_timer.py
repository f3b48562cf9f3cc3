"""Lets a greenlet wait until a moment, to within some microseconds.

gevent's own timers end up to a millisecond late, since epoll_wait counts in milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time

import gevent
from gevent.socket import wait_read

MONOTONIC = time.CLOCK_MONOTONIC
"""The clock of `time.perf_counter` on Linux."""
ABSOLUTE = 1
"""TFD_TIMER_ABSTIME, timerfd_settime(2)."""
WHEN = struct.Struct("@llll")
"""struct itimerspec: interval and moment, each in seconds and nanoseconds."""


class PreciseTimer:
    """A timerfd(2). Linux only. Raises OSError."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._checked(self._libc.timerfd_create(MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC))

    def wait_until(self, moment: float) -> None:
        """Let other greenlets run until `moment` (perf_counter).

        If `moment` is past, they run once.
        """
        if moment <= time.perf_counter():
            gevent.sleep(0)
            return
        whole = int(moment)
        spec = WHEN.pack(0, 0, whole, int((moment - whole) * 1e9) + 1)
        self._checked(self._libc.timerfd_settime(self._descriptor, ABSOLUTE, spec, None))
        wait_read(self._descriptor)
        os.read(self._descriptor, 8)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)

    def _checked(self, answer: int) -> int:
        if answer < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return answer
