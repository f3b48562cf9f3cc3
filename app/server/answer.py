"""The head of an answer as bytes: one place for all of them, whoever gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from http import HTTPStatus

from app.s3.response import Headers, Response

Fields = Sequence[tuple[bytes, bytes]]
Lane = Callable[[str, bytes, bytes, Headers, str, tuple[str, int] | None], Response | None]
"""The fast lane of an application: method, path, query, headers, scheme and client of a request without a body; gives
its answer complete, or None when it would have to wait: then nothing has happened."""

DEFAULT_FIELDS = 2
"""Fields in `WorkerState.default_head`: date and server."""


@lru_cache(128)
def status_line(status: int) -> bytes:
    """The status line of an answer."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


def render_head(status: int, default_head: bytes, fields: Fields) -> bytes:
    """Status line, default fields and `fields`. Raises RuntimeError when a name or a value holds a line end or NUL."""
    lines = b"\r\n".join([b": ".join(field) for field in fields])
    head = b"%b%b%b\r\n\r\n" % (status_line(status), default_head, lines)
    # one look at the whole head instead of one at each field
    expected = DEFAULT_FIELDS + len(fields) + 2
    if head.count(b"\n") != expected or head.count(b"\r") != expected or b"\0" in head:
        raise RuntimeError("a header holds a line end or NUL")
    return head
