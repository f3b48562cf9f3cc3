"""A keep-alive connection to an S3 endpoint that times the first and last byte.

It uses `socket` alone. In Locust's process, where gevent has patched `socket`, a connection waits without blocking
others; in the runner's process it blocks. `FastHttpSession` costs more CPU for each request, and returns an answer only
when its body is complete.

The kernel reports when an answer arrived where it can (Linux, without TLS). So bytes that wait while this process is
busy with another request, or is waking up, do not make a store look slower.
"""

from __future__ import annotations

import fcntl
import html
import re
import socket
import ssl
import termios
import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import httptools

from sluice_s3.loadtests.clients.arrival import receive_stamped, stamp_arrivals
from sluice_s3.loadtests.clients.endpoint import Endpoint

HEAD_BYTES = 16 * 1024
DRAIN_BYTES = 1 << 20
SINGLE_WRITE_BYTES = 64 * 1024
"""A body up to this size goes with its head in one call."""
MOST_KEPT_BYTES = 16 << 20
"""Bytes that are kept of a body that somebody wants, or of an error."""
LOOK_SECONDS = 0.2
"""After so long without progress of a body that is sent, an early answer is looked for."""
LEAST_SECONDS = 1e-6
"""The shortest time an answer can take.

A shorter time means that the wall clock, which the kernel stamps with, was set meanwhile.
"""
CLOSED = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""Errors of a connection that the endpoint closed.

A request that merely timed out may still be under way.
"""
_drain = memoryview(bytearray(DRAIN_BYTES))
_length = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_timing = re.compile(rb"\r\nserver-timing: *([^\r]*)", re.IGNORECASE)
_chunked = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_close = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_keeps = re.compile(rb"\r\nconnection: *keep-alive", re.IGNORECASE)

Body = Callable[[], Iterable[memoryview]]


@dataclass(slots=True)
class Response:
    """An answer.

    `ttfb` and `total` are the seconds from the begin of the request, including the connect, to the first and the last
    byte of the answer.
    """

    status: int = 0
    ttfb: float = 0.0
    total: float = 0.0
    received: int = 0
    """Bytes of the body, without chunk framing."""
    head: bytes = b""
    body: bytes = b""
    """The beginning of an error's body, or the whole body with `keep`."""
    retries: int = 0
    """How often the request was sent again because the endpoint had closed the idle connection."""

    @property
    def phases(self) -> str:
        """The phases of `Server-Timing` in milliseconds: `auth=0.031;index=0.201`."""
        found = _timing.search(self.head)
        return found[1].decode("latin-1").replace(";dur=", "=").replace(", ", ";") if found else ""

    @property
    def problem(self) -> str:
        """S3's code and message of an error, or an empty string."""
        if self.status < 300:
            return ""
        parts = [re.search(rb"<%s>([^<]*)" % name, self.body) for name in (b"Code", b"Message")]
        text = ": ".join(part[1].decode(errors="replace") for part in parts if part)
        return html.unescape(text) or f"status {self.status}"


class ConnectionFailed(Exception):
    """The endpoint sent no answer, or only a part of one.

    `answer` holds what arrived, and its times.
    """

    def __init__(self, message: str, answer: Response) -> None:
        super().__init__(message)
        self.answer = answer


class Connection:
    """A connection that opens on demand and reopens when the endpoint has closed it.

    It carries one request at a time.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._signer = endpoint.signer()
        self._socket: socket.socket | None = None
        self._head = memoryview(bytearray(HEAD_BYTES))
        self._stamped = False
        self._arrived = 0.0
        """When what was received last came (perf_counter)."""
        self._early = b""
        """What came of an answer while the body was sent, and was decrypted already."""
        self._truncates = 0 if endpoint.tls else socket.MSG_TRUNC  # the kernel drops stamps that nobody reads

    def close(self) -> None:
        """Close it; the next request opens it again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(
        self, method: str, path: str, query: str = "", body: Body | None = None, size: int = 0, *, keep: bool = False
    ) -> Response:
        """Send one request and return its answer.

        `path` and `query` must be in the form that is signed. `body` yields `size` bytes each time it is called. The
        answer's body is dropped unless `keep` is true. Raises ConnectionFailed.
        """
        head = self._signer.head(method, path, query, size if method in ("PUT", "POST") else None)
        used = self._socket is not None
        answer = Response()
        started = time.perf_counter()
        try:
            try:
                self._exchange(method, head, body, size, keep, answer, started)
            except CLOSED:
                # an endpoint may close an idle connection just as we use it
                if not used or answer.ttfb:
                    raise
                self.close()
                answer.retries += 1
                self._exchange(method, head, body, size, keep, answer, started)
        except OSError as error:
            self.close()
            answer.total = time.perf_counter() - started
            raise ConnectionFailed(str(error) or type(error).__name__, answer) from error
        except BaseException:  # a greenlet that is killed leaves half an answer
            self.close()
            raise
        return answer

    def open(self) -> socket.socket:
        """Connect unless connected. Raises OSError."""
        if self._socket is None:
            host, port = self._endpoint.address
            try:
                connected = socket.create_connection((host, port), timeout=self._endpoint.timeout)
            except OSError as error:
                raise OSError(f"{host}:{port}: {error}") from error
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._endpoint.tls:
                connected = ssl.create_default_context().wrap_socket(connected, server_hostname=host)
            self._stamped = not self._endpoint.tls and stamp_arrivals(connected)
            self._socket = connected
        return self._socket

    def _exchange(
        self, method: str, head: bytes, body: Body | None, size: int, keep: bool, answer: Response, started: float
    ) -> None:
        wire = self.open()
        self._arrived, self._early = started, b""
        try:
            whole = self._send(wire, head, body, size)
        except CLOSED:
            whole = False  # an answer that came before the body was complete may be readable
        rest = self._receive_head(wire, answer, started)
        reusable = self._receive_body(wire, method, rest, keep, answer) and whole
        answer.total = max(self._arrived - started, LEAST_SECONDS)
        if not reusable or _close.search(answer.head):
            self.close()
        if not whole and answer.status < 300:
            raise OSError(f"status {answer.status} came before the body was sent")

    def _send(self, wire: socket.socket, head: bytes, body: Body | None, size: int) -> bool:
        """Send a request. Return whether all of it was sent: an answer may come before."""
        if body is None or size <= SINGLE_WRITE_BYTES:
            wire.sendall(b"".join((head, *(body() if body is not None else ()))))
            return True
        wire.sendall(head)
        wire.settimeout(min(LOOK_SECONDS, self._endpoint.timeout))
        try:
            return all(self._send_piece(wire, piece) for piece in body())
        finally:
            wire.settimeout(self._endpoint.timeout)

    def _send_piece(self, wire: socket.socket, left: memoryview) -> bool:
        """Send a piece. Return False if the endpoint takes no more of it and has answered."""
        since = time.perf_counter()
        while left:
            try:
                left = left[wire.send(left) :]
                since = time.perf_counter()
            except TimeoutError:
                if self._has_answered(wire):
                    return False
                if time.perf_counter() - since >= self._endpoint.timeout:
                    raise
        return True

    def _has_answered(self, wire: socket.socket) -> bool:
        """Return whether the head of a final answer has come; 1xx is none."""
        if not _waiting_bytes(wire):
            return False
        if not self._endpoint.tls:
            begin = wire.recv(len(b"HTTP/1.1 100"), socket.MSG_PEEK)
            return begin[9:10] != b"1"
        patience = wire.gettimeout()
        wire.settimeout(0)
        try:
            came = wire.recv(HEAD_BYTES)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False  # what came was TLS's own
        finally:
            wire.settimeout(patience)
        self._arrived = time.perf_counter()
        self._early += came
        while self._early[9:10] == b"1" and b"\r\n\r\n" in self._early:
            self._early = self._early.partition(b"\r\n\r\n")[2]
        return not came or self._early[9:10] not in (b"", b"1")

    def _receive(self, wire: socket.socket, buffer: memoryview, flags: int = 0) -> int:
        """Receive bytes and return how many; 0 at the end.

        `_arrived` is the time when they came.
        """
        if not self._stamped:
            count = wire.recv_into(buffer, 0, flags)
            self._arrived = time.perf_counter()
            return count
        count, arrived = receive_stamped(wire, buffer, flags)
        self._arrived = max(self._arrived, arrived)  # even if the wall clock was set meanwhile
        return count

    def _receive_head(self, wire: socket.socket, answer: Response, started: float) -> bytes:
        """Read the head of the final answer. Return the bytes of the body that came with it."""
        data = b""
        interim = True
        while True:
            piece, self._early = self._early, b""
            piece = piece or bytes(self._head[: self._receive(wire, self._head)])
            if not piece:
                raise ConnectionResetError("the endpoint closed the connection")
            if interim:
                interim = False
                answer.ttfb = max(self._arrived - started, LEAST_SECONDS)
            data += piece
            end = data.find(b"\r\n\r\n")
            while end >= 0 and data[9:10] == b"1" and data[9:12] != b"101":
                data = data[end + 4 :]
                interim = not data  # the first byte of the final answer is still to come
                end = data.find(b"\r\n\r\n")
            if end >= 0:
                break
            if len(data) > 4 * HEAD_BYTES:
                raise OSError("an answer's head has no end")
        if not data.startswith(b"HTTP/1.") or not data[9:12].isdigit():
            raise OSError("the answer is not HTTP")
        answer.head, answer.status = data[:end], int(data[9:12])
        return data[end + 4 :]

    def _receive_body(self, wire: socket.socket, method: str, rest: bytes, keep: bool, answer: Response) -> bool:
        """Read the body. Return whether another request can follow on the connection."""
        reusable = answer.head.startswith(b"HTTP/1.1") or _keeps.search(answer.head) is not None
        if method == "HEAD" or answer.status in (204, 304):
            return reusable and not rest
        kept = _KeptBody(keep or answer.status >= 300)
        if _chunked.search(answer.head):
            decoder = _ChunkedBody(answer.head, kept)
            decoder.feed(rest)
            while not decoder.ended:
                count = self._receive(wire, _drain)
                if not count:
                    raise ConnectionResetError("the answer was cut short")
                decoder.feed(_drain[:count])
            answer.received = decoder.length
        elif found := _length.search(answer.head):
            left = int(found[1]) - len(rest)
            kept.add(rest)
            flags = 0 if kept.room else self._truncates
            answer.received = int(found[1])
            while left > 0:
                count = self._receive(wire, _drain[:left], flags)
                if not count:
                    answer.received -= left
                    raise ConnectionResetError("the answer was cut short")
                kept.add(_drain[:count])
                left -= count
            reusable = reusable and left == 0  # more than announced would be taken for the next answer
        else:
            self._receive_until_closed(wire, rest, kept, answer)
            reusable = False
        answer.body = kept.data
        return reusable

    def _receive_until_closed(self, wire: socket.socket, rest: bytes, kept: _KeptBody, answer: Response) -> None:
        """Read a body whose end is that of the connection."""
        kept.add(rest)
        answer.received = len(rest)
        while count := self._receive(wire, _drain, 0 if kept.room else self._truncates):
            answer.received += count
            kept.add(_drain[:count])


class _KeptBody:
    """The beginning of an answer's body, if it is wanted."""

    def __init__(self, wanted: bool) -> None:
        self.room = MOST_KEPT_BYTES if wanted else 0
        self._parts: list[bytes] = []

    def add(self, data: bytes | memoryview) -> None:
        """Keep what there is room for."""
        if self.room:
            part = bytes(data[: self.room])
            self.room -= len(part)
            self._parts.append(part)

    @property
    def data(self) -> bytes:
        """All that was kept."""
        return b"".join(self._parts)


class _ChunkedBody:
    """Decodes the chunks of an answer's body."""

    def __init__(self, head: bytes, kept: _KeptBody) -> None:
        self.ended = False
        self.length = 0
        self._kept = kept
        self._parser: Any = httptools.HttpResponseParser(self)
        self.feed(head + b"\r\n\r\n")

    def feed(self, data: bytes | memoryview) -> None:
        """Decode received bytes. Raises OSError for what is not HTTP."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise OSError(f"the answer is not HTTP: {error}") from error

    def on_body(self, data: bytes) -> None:
        """Take the data of a chunk (called by the parser)."""
        self.length += len(data)
        self._kept.add(data)

    def on_message_complete(self) -> None:
        """Note the end, after the last chunk and the trailers (called by the parser)."""
        self.ended = True


def _waiting_bytes(wire: socket.socket) -> int:
    """Return how many bytes can be received at once."""
    count = array("i", [0])
    fcntl.ioctl(wire, termios.FIONREAD, count)
    return count[0]
