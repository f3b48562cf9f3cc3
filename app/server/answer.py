"""The head of an answer as bytes: one place for all of them, whoever gives them."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus

from app.s3.response import Headers, render

JOINED = 64 * 1024
"""A body up to this long is copied behind its head, so that both go out in one write."""


@lru_cache(128)
def status_line(status: int) -> bytes:
    """The status line of an answer."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


def render_head(status: int, default_head: bytes, rendered: bytes, fields: Headers) -> bytes:
    """Status line, default lines, lines that are rendered already, and `fields`.

    Raises ValueError when a name or a value holds a line end or NUL.
    """
    if fields:
        rendered += render(fields)
    return b"%b%b%b\r\n" % (status_line(status), default_head, rendered)
