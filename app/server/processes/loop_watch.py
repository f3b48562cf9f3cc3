"""Records what blocked the event loop of a process, and for how long.

A thread samples the stack of the loop's thread. When it does anything but wait for events, the thread schedules a call
on the loop. Until that call runs, the thread records what runs instead; the call measures how long the loop was
blocked. An idle loop is never woken.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.server.shared_memory.operation_names import UNKNOWN

logger = logging.getLogger("sluice.server")

HOLD_SECONDS = 0.1
"""Seconds above which a blocked loop is reported."""
SAMPLE_SECONDS = 0.05
"""Seconds between two samples. A shorter hold than `HOLD_SECONDS` and this may go unnoticed."""
LOG_SECONDS = 1.0
"""Seconds between two log lines."""
OWN_MODULES = ("sluice_s3.app.", "sluice_s3.storage_drivers.")

Note = Callable[[str, float], None]
"""Called with the operation that blocked the loop, and the seconds."""


class Holder(NamedTuple):
    """The call that blocks the loop."""

    operation: str
    request_id: str
    function: str


NOBODY = Holder(UNKNOWN, "-", "-")


class LoopWatch:
    """Watches the loop that it is started in."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._scheduled_at: float | None = None
        """The time of a scheduled call that has not run yet."""
        self._busy = 0.0
        """CPU seconds that the loop's thread had used then."""
        self._sampled = False
        """The thread has sampled what delays that call."""
        self._holder: Holder | None = None
        self._logged_at = float("-inf")
        self._ended = threading.Event()

    def start(self) -> None:
        """Start to watch the running loop."""
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread_id)
        threading.Thread(target=self._run, name="loop-watch", daemon=True).start()

    def stop(self) -> None:
        """Stop watching."""
        self._ended.set()

    # in the thread
    def _run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            try:
                self._sample()
            except RuntimeError:  # the loop is closed
                return

    def _sample(self) -> None:
        frame = sys._current_frames().get(self._thread_id)
        if self._scheduled_at is None:
            if not is_waiting(frame):
                self._sampled, self._busy = False, time.clock_gettime(self._clock)
                self._scheduled_at = time.monotonic()
                self._loop.call_soon_threadsafe(self._measure)
        elif not self._sampled and time.monotonic() - self._scheduled_at > HOLD_SECONDS / 2:
            self._holder = None if is_waiting(frame) else find_holder(frame)
            self._sampled = True

    # in the loop
    def _measure(self) -> None:
        scheduled_at, now = self._scheduled_at, time.monotonic()
        if scheduled_at is not None and now - scheduled_at > HOLD_SECONDS:
            self._report(now - scheduled_at, now, time.clock_gettime(self._clock) - self._busy)
        self._scheduled_at = None

    def _report(self, hold_seconds: float, now: float, busy_seconds: float) -> None:
        """Report a hold; `busy_seconds` is the CPU time of the loop's thread during it."""
        # the thread could not sample while it waited too, for the interpreter or a processor
        unseen = NOBODY if busy_seconds > hold_seconds / 2 else None
        holder = self._holder if self._sampled else unseen
        if holder is None:
            return  # the whole process was blocked, not its loop
        self._note(holder.operation, hold_seconds)
        if now - self._logged_at > LOG_SECONDS:
            self._logged_at = now
            operation, request_id, function = holder
            line = "%s: the event loop was held for %.3f s (%.3f s of CPU) by %s (%s)"
            logger.warning(line, request_id, hold_seconds, busy_seconds, operation, function)


def is_waiting(frame: FrameType | None) -> bool:
    """Return whether the loop of a thread in this frame waits for events."""
    return frame is None or frame.f_globals.get("__name__") == "asyncio.runners"


def find_holder(frame: FrameType | None) -> Holder:
    """Return what runs in a frame, with its request or that of a caller."""
    function = ""
    while frame is not None:
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if not function or (module.startswith(OWN_MODULES) and not function.startswith(OWN_MODULES)):
            function = f"{module}.{code.co_qualname}"
        request = frame.f_locals.get("request") if "request" in code.co_varnames + code.co_freevars else None
        if isinstance(request, S3Request):
            return Holder(request.operation, getattr(request, "request_id", "-"), function)
        frame = frame.f_back
    return Holder(UNKNOWN, "-", function)
