"""The access log: one JSON line a request, the lines of one turn of the event loop in one write(2)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

import orjson

STDOUT = 1
AT_ONCE = 4096
"""Bytes of one write at most (but for a longer line): pipes keep so many together (pipe(7), PIPE_BUF), whatever other
workers write there."""
DELETE = 0x7F
SLOW = 0.001
"""Seconds from which on it is worth to say where they went."""
MANY = 256
"""Lines that wait at most."""


class AccessLog:
    """Lines to a descriptor. A request's headers and query never get here, and so neither secret nor signature.

    Text is escaped to ASCII, so that neither a control character nor a forged line can come out of it. A consumer that
    does not read stops the writer, as with any log on a pipe; one that is gone ends the log, not the server.

    With `defer` (the loop's `call_soon`) lines are gathered until the loop has done what it was about: a process that
    is killed loses those of that moment, of requests that may have been answered. Whoever ends calls `flush`.
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
    ) -> None:
        """Write one line; times in it are milliseconds. The phases are in it from `SLOW` on."""
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
            # whole microseconds first, so that the shortest form of the quotient has three places
            "ms": int(seconds * 1e6) / 1000,
        }
        if seconds >= SLOW:
            fields["phases"] = {phase: int(spent * 1e6) / 1000 for phase, spent in timings.items()}
        line = _line(fields)
        lines = self._lines
        lines.append(line)
        if self.defer is None or len(lines) >= MANY:
            self.flush()
        elif len(lines) == 1:
            self.defer(self.flush)

    def flush(self) -> None:
        """Write the lines that wait."""
        lines, self._lines = self._lines, []
        start = size = 0
        for at, line in enumerate(lines):
            if size and size + len(line) > AT_ONCE:
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


def _line(fields: dict[str, object]) -> bytes:
    try:
        line = orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # half a surrogate pair
        line = b"\xff"
    if line.isascii() and DELETE not in line:
        return line
    return json.dumps(fields, separators=(",", ":")).replace("\x7f", "\\u007f").encode("ascii") + b"\n"
