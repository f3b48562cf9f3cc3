"""Requests that ask for an upgrade, which is ignored (RFC 9110 7.8), and have bodies.

llhttp ends at the head of such a request and would read its body as the next one. Java's HttpClient asks for h2c with
the first request to any server without TLS, uploads included.
"""

from __future__ import annotations

from typing import Protocol

import httptools


class ParserCallbacks(Protocol):
    """What a parser calls."""

    def on_message_begin(self) -> None:
        """Begin a message."""
        ...

    def on_url(self, url: bytes) -> None:
        """Take a piece of the request target."""
        ...

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        ...

    def on_headers_complete(self) -> None:
        """End the head."""
        ...

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        ...

    def on_message_complete(self) -> None:
        """End the message."""
        ...


def body_parser(connection: ParserCallbacks, length: int | None) -> httptools.HttpRequestParser:
    """Return a parser for a body of `length` bytes (None: chunked) and later requests.

    It is fed a substitute head with the same framing, which the connection never sees.
    """
    events = _Events(connection)
    parser = httptools.HttpRequestParser(events)
    framing = b"Transfer-Encoding: chunked" if length is None else b"Content-Length: %d" % length
    parser.feed_data(b"PUT / HTTP/1.1\r\nHost: -\r\n" + framing + b"\r\n\r\n")
    events.quiet = False
    return parser


class _Events:
    """Passes the parser's callbacks on to the connection unless `quiet`."""

    def __init__(self, connection: ParserCallbacks) -> None:
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
