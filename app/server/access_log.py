"""The access log: one JSON line a request, written by one write(2)."""

from __future__ import annotations

import os
import time
from json.encoder import encode_basestring_ascii as quoted

STDOUT = 1
LINE = (
    '%s.%03dZ","request":"%s","client":%s,"access_key":%s,"method":%s,"operation":"%s","bucket":%s,"key":%s,'
    '"status":%d,"error":"%s","bytes_in":%d,"bytes_out":%d,"ms":%.3f,"phases":{%s}}\n'
)
PHASE = '"%s":%.3f'
"""Formatted with `%`, which costs a third less here than an f-string."""


class AccessLog:
    """Lines to a descriptor. A request's headers and query never get here, and so neither secret nor signature.

    Text is escaped to ASCII, so that neither a control character nor a forged line can come out of it. A consumer that
    does not read stops the writer, as with any log on a pipe; one that is gone ends the log, not the server.
    """

    def __init__(self, fd: int = STDOUT) -> None:
        self._fd = fd
        self._second = -1
        self._prefix = ""

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
        """Write one line; times in it are milliseconds."""
        now = time.time()
        second = int(now)
        if second != self._second:
            self._second = second
            self._prefix = time.strftime('{"time":"%Y-%m-%dT%H:%M:%S', time.gmtime(second))
        phases = ",".join([PHASE % (phase, spent * 1000) for phase, spent in timings.items()])
        line = LINE % (
            self._prefix,
            (now - second) * 1000,
            request_id,
            quoted(client),
            _text(access_key),
            quoted(method),
            operation,
            _text(bucket),
            _text(key),
            status,
            code,
            bytes_in,
            bytes_out,
            seconds * 1000,
            phases,
        )
        try:
            os.write(self._fd, line.encode("ascii"))
        except OSError:
            pass


def _text(value: str | None) -> str:
    if value is None:
        return "null"
    text = quoted(value)
    return text.replace("\x7f", "\\u007f") if "\x7f" in text else text
