"""The access log: one JSON line per request, one write(2) per loop turn."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

import orjson

STDOUT = 1
BYTES_PER_WRITE = 4096
"""Bytes of one write, unless a line is longer. A pipe writes this many atomically (pipe(7), PIPE_BUF)."""
DELETE = 0x7F
SLOW_REQUEST_SECONDS = 0.001
"""Seconds from which a record names its phases."""
MAX_BUFFERED_LINES = 256
"""Lines that may be buffered."""


class AccessLog:
    """Writes lines to a descriptor. It never sees headers or queries, and so no secrets or signatures.

    Text is escaped to ASCII, so that no control character and no forged line can come out of it. A consumer that does
    not read blocks the writer, as with any log on a pipe. A consumer that has closed the pipe ends the log, not the
    server.

    With `defer` (the loop's `call_soon`) lines are buffered until the end of the loop's turn. A killed process loses
    the lines of that turn, of requests that may have been answered. Call `flush` before the process ends.
    """

    def __init__(self, fd: int = STDOUT) -> None:
        self._fd = fd
        self._now = self._next_second = 0
        self._second = ""
        self._time = ""
        self._lines: list[bytes] = []
        self.defer: Callable[[Callable[[], None]], object] | None = None

    def write(
        self,
        request_id: str,
        method: str,
        operation: str,
        bucket: str | None,
        key: str | None,
        status: int,
        bytes_in: int,
        bytes_out: int,
        seconds: float,
        access_key: str | None,
        client: str,
        timings: dict[str, float],
        code: str = "",
    ) -> bytes:
        """Write one line, with times in milliseconds, and phases from `SLOW_REQUEST_SECONDS` on. Returns it."""
        now = time.time_ns() // 1_000_000
        if now != self._now:
            self._now = now
            if now >= self._next_second or now < self._next_second - 1000:
                self._second = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(now // 1000))
                self._next_second = now - now % 1000 + 1000
            self._time = f"{self._second}{now % 1000:03d}Z"
        fields: dict[str, object] = {
            "time": self._time,
            "request": request_id,
            "client": client,
            "access_key": access_key,
            "method": method,
            "operation": operation,
            "bucket": bucket,
            "key": key,
            "status": status,
            "error": code,
            "bytes_in": bytes_in,
            "bytes_out": bytes_out,
            # to whole microseconds first, so that the quotient prints with three decimals at most
            "ms": int(seconds * 1e6) / 1000,
        }
        if seconds >= SLOW_REQUEST_SECONDS:
            fields["phases"] = {phase: int(spent * 1e6) / 1000 for phase, spent in timings.items()}
        line = _line(fields)
        lines = self._lines
        lines.append(line)
        if self.defer is None or len(lines) >= MAX_BUFFERED_LINES:
            self.flush()
        elif len(lines) == 1:
            self.defer(self.flush)
        return line

    def flush(self) -> None:
        """Write the buffered lines."""
        lines, self._lines = self._lines, []
        start = size = 0
        for at, line in enumerate(lines):
            if size and size + len(line) > BYTES_PER_WRITE:
                self._put(b"".join(lines[start:at]))
                start, size = at, 0
            size += len(line)
        if size:
            self._put(b"".join(lines[start:]))

    def _put(self, lines: bytes) -> None:
        try:
            os.write(self._fd, lines)
        except OSError:
            pass


class UnwrittenLog(AccessLog):
    """Makes the lines, and writes none: for those who watch requests while the access log is off."""

    def flush(self) -> None:
        """Drop the lines."""
        self._lines = []


def _line(fields: dict[str, object]) -> bytes:
    try:
        line = orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # half a surrogate pair
        line = b"\xff"
    if line.isascii() and DELETE not in line:
        return line
    return json.dumps(fields, separators=(",", ":")).replace("\x7f", "\\u007f").encode("ascii") + b"\n"
