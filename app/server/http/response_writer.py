"""Writes a response piece by piece, with the framing that its head announces."""

from __future__ import annotations

import asyncio

from sluice_s3.app.server.http.interfaces import Message
from sluice_s3.app.server.http.response_head import CONNECTION_CLOSE, render_head, split_framing, write_joined


class ResponseWriter:
    """A response whose head is written together with the start of its body."""

    def __init__(self, transport: asyncio.Transport, left: int = 0) -> None:
        """`left`: bytes left of the body, where its head and its start are written already."""
        self._transport = transport
        self._bodiless = False
        self._chunked = False
        self._left = left
        """Bytes left of the body; -1 when its length is unknown."""
        self.head: bytes | None = None
        """The head, until it is written."""

    def start(self, message: Message, method: str, version: str, default_head: bytes, *, keep_alive: bool) -> bool:
        """Render the head of an ASGI message; return whether the connection may be kept alive after the body."""
        status = message["status"]
        fields, length, closes = split_framing(message.get("headers", ()), message.get("length"))
        keep_alive = keep_alive and not closes
        self._bodiless = status in (204, 304) or method == "HEAD"
        if length is not None:
            self._left = 0 if self._bodiless else length
        elif not self._bodiless:
            if version == "1.1":
                self._chunked = True
                fields.append((b"transfer-encoding", b"chunked"))
            else:
                keep_alive = False
                self._left = -1
        if not keep_alive:
            fields.append(CONNECTION_CLOSE)
        self.head = render_head(status, default_head, message.get("head", b""), fields)
        return keep_alive

    def write(self, body: bytes, more: bool) -> None:
        """Write the next piece of the body. Raises RuntimeError when the body has another length than announced."""
        if self._bodiless:
            body = b""
        elif self._chunked:
            end = b"" if more else b"0\r\n\r\n"
            body = b"%x\r\n%b\r\n%b" % (len(body), body, end) if body else end
        elif self._left >= 0:
            self._count(len(body))
        head, self.head = self.head, None
        if head is not None:
            write_joined(self._transport, head, body)
        elif body:
            self._transport.write(body)
        if not more and self._left > 0:
            raise RuntimeError("the answer is shorter than its content-length")

    def take_head(self, count: int) -> bytes:
        """Count bytes of the body that bypass `write`; return the head if it has to be sent before them."""
        if self._chunked or self._left < 0:
            raise RuntimeError("a file needs a content-length")
        self._count(count)
        head, self.head = self.head, None
        return head or b""

    def _count(self, size: int) -> None:
        if size > self._left:
            raise RuntimeError("the answer is longer than its content-length")
        self._left -= size
