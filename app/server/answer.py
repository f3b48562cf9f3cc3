"""The head of an answer as bytes: one place for all of them, whoever gives them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus

from app.s3.request import S3Request
from app.s3.response import Headers, Response, render

Lane = Callable[[S3Request], Response | None]
"""The fast lane of an application: gets a request without a body, gives its answer complete, or None when it would have
to wait; the ordinary way then gets the same request."""


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
