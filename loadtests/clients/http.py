"""A keep-alive connection to an S3 endpoint that times the first and last byte.

It uses `socket` alone. In Locust's process, where gevent has patched `socket`, a connection waits without blocking
others; in the runner's process it blocks. `FastHttpSession` costs more CPU for each request, and returns an answer only
when its body is complete.

The kernel reports when an answer arrived where it can (Linux, without TLS). So bytes that wait while this process is
busy with another request, or is waking up, do not make a store look slower.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httptools

from sluice_s3.loadtests.clients.signing import Signer

HEAD_BYTES = 16 * 1024
DRAIN_BYTES = 1 << 20
SINGLE_WRITE_BYTES = 64 * 1024
"""A body up to this size goes with its head in one call."""
LEAST_SECONDS = 1e-6
"""The shortest time an answer can take.

A shorter time means that the wall clock, which the kernel stamps with, was set meanwhile.
"""
CLOSED = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""Errors of a connection that the endpoint closed.

A request that merely timed out may still be under way.
"""
SO_TIMESTAMPNS_NEW = 64
"""SO_TIMESTAMPNS_NEW of Linux (asm-generic/socket.h), which `socket` does not name."""
_STAMP = struct.Struct("=qq")
_ANCILLARY = socket.CMSG_SPACE(_STAMP.size)
_drain = memoryview(bytearray(DRAIN_BYTES))
_length = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_timing = re.compile(rb"\r\nserver-timing: *([^\r]*)", re.IGNORECASE)
_chunked = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_close = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)

Body = Callable[[], Iterable[memoryview]]


@dataclass(frozen=True)
class Endpoint:
    """Where requests go, and who signs them.

    Raises ValueError for a URL that is not HTTP.
    """

    url: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"
    timeout: float = 60.0
    """Seconds without progress after which a request fails."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise ValueError(f"{self.url!r} is not http://HOST:PORT or https://HOST:PORT")

    @property
    def tls(self) -> bool:
        """Whether connections are encrypted."""
        return urlsplit(self.url).scheme == "https"

    @property
    def address(self) -> tuple[str, int]:
        """The host and port to connect to."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or (443 if self.tls else 80)

    def signer(self) -> Signer:
        """Return a signer for this endpoint's `Host` header."""
        return Signer(urlsplit(self.url).netloc, self.access_key, self.secret_key, self.region)


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
        return ": ".join(part[1].decode(errors="replace") for part in parts if part) or f"status {self.status}"


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
            connected = socket.create_connection(self._endpoint.address, timeout=self._endpoint.timeout)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._endpoint.tls:
                connected = ssl.create_default_context().wrap_socket(
                    connected, server_hostname=self._endpoint.address[0]
                )
            self._stamped = not self._endpoint.tls and _stamps(connected)
            self._socket = connected
        return self._socket

    def _exchange(
        self, method: str, head: bytes, body: Body | None, size: int, keep: bool, answer: Response, started: float
    ) -> None:
        wire = self.open()
        refused = False
        self._arrived = started
        try:
            if body is not None and size <= SINGLE_WRITE_BYTES:
                wire.sendall(b"".join((head, *body())))
            else:
                wire.sendall(head)
                for piece in body() if body is not None else ():
                    wire.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            refused = True  # an answer that came before the body was complete may be readable
        rest = self._receive_head(wire, answer, started)
        self._receive_body(wire, method, rest, keep, answer)
        answer.total = max(self._arrived - started, LEAST_SECONDS)
        if refused or _close.search(answer.head):
            self.close()

    def _receive(self, wire: socket.socket, buffer: memoryview, flags: int = 0) -> int:
        """Receive bytes and return how many; 0 at the end.

        `_arrived` is the time when they came.
        """
        if not self._stamped:
            count = wire.recv_into(buffer, 0, flags)
            self._arrived = time.perf_counter()
            return count
        count, ancillary, _, _ = wire.recvmsg_into([buffer], _ANCILLARY, flags)
        arrived = time.perf_counter()
        if ancillary:
            seconds, nanoseconds = _STAMP.unpack(ancillary[0][2])
            arrived -= max(0, time.time_ns() - seconds * 10**9 - nanoseconds) / 1e9
        self._arrived = max(self._arrived, arrived)  # even if the wall clock was set meanwhile
        return count

    def _receive_head(self, wire: socket.socket, answer: Response, started: float) -> bytes:
        """Read the head. Return the bytes of the body that came with it."""
        data = b""
        while True:
            count = self._receive(wire, self._head)
            if not count:
                raise ConnectionResetError("the endpoint closed the connection")
            if not answer.ttfb:
                answer.ttfb = max(self._arrived - started, LEAST_SECONDS)
            data += self._head[:count]
            end = data.find(b"\r\n\r\n")
            while end >= 0 and data[9:12] == b"100":
                data = data[end + 4 :]
                end = data.find(b"\r\n\r\n")
            if end >= 0:
                break
            if len(data) > 4 * HEAD_BYTES:
                raise OSError("an answer's head has no end")
        if not data.startswith(b"HTTP/1.") or not data[9:12].isdigit():
            raise OSError("the answer is not HTTP")
        answer.head, answer.status = data[:end], int(data[9:12])
        return data[end + 4 :]

    def _receive_body(self, wire: socket.socket, method: str, rest: bytes, keep: bool, answer: Response) -> None:
        if method == "HEAD" or answer.status in (204, 304):
            return
        keep = keep or answer.status >= 300
        found = _length.search(answer.head)
        if found:
            left = int(found[1]) - len(rest)
            kept = [rest] if keep else []
            flags = 0 if keep else self._truncates
            answer.received = int(found[1])
            while left > 0:
                count = self._receive(wire, _drain[:left], flags)
                if not count:
                    answer.received -= left
                    raise ConnectionResetError("the answer was cut short")
                if keep:
                    kept.append(bytes(_drain[:count]))
                left -= count
            answer.body = b"".join(kept)
        elif _chunked.search(answer.head):
            chunked = _ChunkedBody(answer.head, keep)
            chunked.feed(rest)
            while not chunked.ended:
                count = self._receive(wire, _drain)
                if not count:
                    raise ConnectionResetError("the answer was cut short")
                chunked.feed(_drain[:count])
            answer.received, answer.body = chunked.length, b"".join(chunked.buffered)


class _ChunkedBody:
    """Decodes the chunks of an answer's body. Retains the data only when `keep` is true."""

    def __init__(self, head: bytes, keep: bool) -> None:
        self.ended = False
        self.length = 0
        self.buffered: list[bytes] = []
        self._keep = keep
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
        if self._keep:
            self.buffered.append(data)

    def on_message_complete(self) -> None:
        """Note the end, after the last chunk and the trailers (called by the parser)."""
        self.ended = True


def _stamps(wire: socket.socket) -> bool:
    """Ask the kernel to stamp received bytes. Return whether it will."""
    if sys.platform != "linux":
        return False
    try:
        wire.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS_NEW, 1)
    except OSError:
        return False
    return True
