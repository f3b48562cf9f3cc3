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

HELD_SECONDS = 0.1
"""Seconds above which a blocked loop is reported."""
LOOK_SECONDS = 0.05
"""Seconds between two samples. A shorter hold than `HELD_SECONDS` and this may go unnoticed."""
LOG_SECONDS = 1.0
"""Seconds between two log lines."""
OURS = ("sluice_s3.app.", "sluice_s3.storage_drivers.")

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
        self._asked: float | None = None
        """The time of a scheduled call that has not run yet."""
        self._busy = 0.0
        """CPU seconds that the loop's thread had used then."""
        self._looked = False
        """The thread has sampled what delays that call."""
        self._holder: Holder | None = None
        self._told = float("-inf")
        self._ended = threading.Event()

    def start(self) -> None:
        """Start to watch the running loop."""
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread_id)
        threading.Thread(target=self._look_often, name="loop-watch", daemon=True).start()

    def stop(self) -> None:
        """Stop watching."""
        self._ended.set()

    # in the thread
    def _look_often(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            try:
                self._look()
            except RuntimeError:  # the loop is closed
                return

    def _look(self) -> None:
        frame = sys._current_frames().get(self._thread_id)
        if self._asked is None:
            if not waits(frame):
                self._looked, self._busy = False, time.clock_gettime(self._clock)
                self._asked = time.monotonic()
                self._loop.call_soon_threadsafe(self._come)
        elif not self._looked and time.monotonic() - self._asked > HELD_SECONDS / 2:
            self._holder = None if waits(frame) else holder_of(frame)
            self._looked = True

    # in the loop
    def _come(self) -> None:
        asked, now = self._asked, time.monotonic()
        if asked is not None and now - asked > HELD_SECONDS:
            self._tell(now - asked, now, time.clock_gettime(self._clock) - self._busy)
        self._asked = None

    def _tell(self, held: float, now: float, busy: float) -> None:
        """Report a hold; `busy` is the CPU time of the loop's thread during it."""
        # the thread could not sample while it waited too, for the interpreter or a processor
        unseen = NOBODY if busy > held / 2 else None
        holder = self._holder if self._looked else unseen
        if holder is None:
            return  # the whole process was blocked, not its loop
        self._note(holder.operation, held)
        if now - self._told > LOG_SECONDS:
            self._told = now
            operation, request_id, function = holder
            line = "%s: the event loop was held for %.3f s (%.3f s of CPU) by %s (%s)"
            logger.warning(line, request_id, held, busy, operation, function)


def waits(frame: FrameType | None) -> bool:
    """Return whether the loop of a thread in this frame waits for events."""
    return frame is None or frame.f_globals.get("__name__") == "asyncio.runners"


def holder_of(frame: FrameType | None) -> Holder:
    """Return what runs in a frame, with its request or that of a caller."""
    function = ""
    while frame is not None:
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if not function or (module.startswith(OURS) and not function.startswith(OURS)):
            function = f"{module}.{code.co_qualname}"
        request = frame.f_locals.get("request") if "request" in code.co_varnames + code.co_freevars else None
        if isinstance(request, S3Request):
            return Holder(request.operation, getattr(request, "request_id", "-"), function)
        frame = frame.f_back
    return Holder(UNKNOWN, "-", function)
