"""Requests that ask for another protocol, which is never taken (RFC 9110 7.8), and have a body that is.

llhttp ends at the head of such a request, and would read its body as the next one. Java's HttpClient asks for h2c with
the first request to any server without TLS, uploads too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httptools

if TYPE_CHECKING:
    from app.server.protocol import Connection


def parser_of_body(connection: Connection, length: int | None) -> httptools.HttpRequestParser:
    """A parser for a body of `length` bytes, None when it is chunked, and for the requests behind it.

    It is told another head with the same framing, of which the connection hears nothing.
    """
    events = _Events(connection)
    parser = httptools.HttpRequestParser(events)
    framing = b"Transfer-Encoding: chunked" if length is None else b"Content-Length: %d" % length
    parser.feed_data(b"PUT / HTTP/1.1\r\nHost: -\r\n" + framing + b"\r\n\r\n")
    events.quiet = False
    return parser


class _Events:
    """What the parser calls, passed on to the connection unless `quiet`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.quiet = True
        self.on_body = connection.on_body
        self.on_message_complete = connection.on_message_complete

    def on_message_begin(self) -> None:
        if not self.quiet:
            self.connection.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if not self.quiet:
            self.connection.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.quiet:
            self.connection.on_header(name, value)

    def on_headers_complete(self) -> None:
        if not self.quiet:
            self.connection.on_headers_complete()
