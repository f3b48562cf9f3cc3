"""The bytes of a response head, rendered in one place for all answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus

from sluice_s3.app.s3.wire.response import Headers, Response, render_headers

NO_FIELDS: Headers = []
CONNECTION_CLOSE = (b"connection", b"close")
JOINED = 64 * 1024
"""Bytes of a body that is copied behind its head, to need one write."""


@lru_cache(128)
def status_line(status: int) -> bytes:
    """Return the status line of an answer."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


def write_response(
    transport: asyncio.Transport, response: Response, body: bytes, default_head: bytes, fields: Headers = NO_FIELDS
) -> None:
    """Write a finished response and its body, with `fields` after those of its head."""
    write_joined(transport, render_head(response.status, default_head, response.head, fields), body)


def write_joined(transport: asyncio.Transport, head: bytes, body: bytes) -> None:
    """Write a head and its body, or the start of that, in one system call."""
    if len(body) <= JOINED:
        transport.write(head + body)
    else:
        transport.writelines((head, body))


def split_framing(headers: Iterable[tuple[bytes, bytes]], length: int | None) -> tuple[Headers, int | None, bool]:
    """Return the fields to send, the length of the body, and whether the connection closes after it.

    `length` is that of a body without `content-length`; None if unknown. The server decides the other fields of
    framing. Raises ValueError for a `content-length` that is no number.
    """
    fields, closes = [], False
    for field in headers:
        name, value = field
        if name == b"connection":
            closes = closes or b"close" in value.lower()
        elif name != b"transfer-encoding":
            fields.append(field)
            if name == b"content-length":
                length = int(value)
    return fields, length, closes


def render_head(status: int, default_head: bytes, rendered: bytes, fields: Headers) -> bytes:
    """Return the status line, default lines, rendered lines and `fields`.

    Raises ValueError when a name or a value holds a line end or NUL.
    """
    if fields:
        rendered += render_headers(fields)
    return b"%b%b%b\r\n" % (status_line(status), default_head, rendered)
