"""One keep-alive connection to an S3 endpoint: signed requests, with the first byte and the last timed apart.

It is written on `socket` alone: in Locust's process, where gevent has patched that, a connection waits without holding
up others; in the runner's it simply blocks. `FastHttpSession` costs more CPU a request, and hands over an
answer only when its body is whole.

When an answer came is asked of the kernel where it can tell (Linux, without TLS): bytes that lie there while this
process is busy with another request, or is only waking up, make no store slower.
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
from urllib.parse import urlsplit

from benchmarks.signing import Signer

HEAD_BYTES = 16 * 1024
DRAIN_BYTES = 1 << 20
TOGETHER = 64 * 1024
"""A body up to this many bytes goes with its head in one call."""
LAST_CHUNK = b"\r\n0\r\n\r\n"
STAMPS = 64
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
    """Where requests go, and who signs them. Raises ValueError for a URL that is none of HTTP."""

    url: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"
    timeout: float = 60.0
    """Seconds without any progress after which a request has failed."""

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
        """Host and port to connect to."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or (443 if self.tls else 80)

    def signer(self) -> Signer:
        """A signer for this endpoint's name, as its `Host` header says it."""
        return Signer(urlsplit(self.url).netloc, self.access_key, self.secret_key, self.region)


@dataclass(slots=True)
class Answer:
    """An answer. `ttfb` and `total` are seconds from when the request was begun, connecting included, to when the first
    byte of the answer and the last arrived."""

    status: int = 0
    ttfb: float = 0.0
    total: float = 0.0
    received: int = 0
    """Bytes of the body (of a chunked one, with its framing)."""
    head: bytes = b""
    body: bytes = b""
    """The beginning of an error's; the whole of one that was asked for."""

    @property
    def phases(self) -> str:
        """Of `Server-Timing`: `auth=0.031;index=0.201`, in milliseconds."""
        found = _timing.search(self.head)
        return found[1].decode("latin-1").replace(";dur=", "=").replace(", ", ";") if found else ""

    @property
    def problem(self) -> str:
        """S3's code and message of an error, or nothing."""
        if self.status < 300:
            return ""
        parts = [re.search(rb"<%s>([^<]*)" % name, self.body) for name in (b"Code", b"Message")]
        return ": ".join(part[1].decode(errors="replace") for part in parts if part) or f"status {self.status}"


class Lost(Exception):
    """No answer, or none to its end. `answer` has what there was of it, and its times."""

    def __init__(self, message: str, answer: Answer) -> None:
        super().__init__(message)
        self.answer = answer


class Connection:
    """Opened when it is needed, and anew when the endpoint closed it. One request at a time."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._signer = endpoint.signer()
        self._socket: socket.socket | None = None
        self._head = memoryview(bytearray(HEAD_BYTES))
        self._stamped = False
        self._arrived = 0.0
        """When what was received last came (perf_counter)."""
        self._truncates = 0 if endpoint.tls else socket.MSG_TRUNC  # the kernel drops what nobody looks at

    def close(self) -> None:
        """Close it; the next request opens it again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(
        self, method: str, path: str, query: str = "", body: Body | None = None, size: int = 0, *, keep: bool = False
    ) -> Answer:
        """One request. `path` and `query` are in the form that is signed; `body` gives `size` bytes each time it is
        called. The answer's body is dropped unless `keep`. Raises Lost."""
        head = self._signer.head(method, path, query, size if method in ("PUT", "POST") else None)
        used = self._socket is not None
        answer = Answer()
        begun = time.perf_counter()
        try:
            try:
                self._exchange(method, head, body, size, keep, answer, begun)
            except OSError:
                # an endpoint may close a connection that is idle just as we use it
                if not used or answer.ttfb:
                    raise
                self.close()
                self._exchange(method, head, body, size, keep, answer, begun)
        except OSError as error:
            self.close()
            answer.total = time.perf_counter() - begun
            raise Lost(str(error) or type(error).__name__, answer) from error
        except BaseException:  # a greenlet that is ended leaves half an answer
            self.close()
            raise
        return answer

    def open(self) -> socket.socket:
        """Connect, if it is not. Raises OSError."""
        if self._socket is None:
            made = socket.create_connection(self._endpoint.address, timeout=self._endpoint.timeout)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._endpoint.tls:
                made = ssl.create_default_context().wrap_socket(made, server_hostname=self._endpoint.address[0])
            self._stamped = not self._endpoint.tls and _stamps(made)
            self._socket = made
        return self._socket

    def _exchange(
        self, method: str, head: bytes, body: Body | None, size: int, keep: bool, answer: Answer, begun: float
    ) -> None:
        wire = self.open()
        refused = False
        self._arrived = begun
        try:
            if body is not None and size <= TOGETHER:
                wire.sendall(b"".join((head, *body())))
            else:
                wire.sendall(head)
                for piece in body() if body is not None else ():
                    wire.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            refused = True  # an answer before the body was whole may be there to be read
        rest = self._receive_head(wire, answer, begun)
        self._receive_body(wire, method, rest, keep, answer)
        answer.total = self._arrived - begun
        if refused or _close.search(answer.head):
            self.close()

    def _receive(self, wire: socket.socket, buffer: memoryview, flags: int = 0) -> int:
        """Bytes that were received; 0 at the end. `_arrived` tells when they came."""
        if not self._stamped:
            count = wire.recv_into(buffer, 0, flags)
            self._arrived = time.perf_counter()
            return count
        count, told, _, _ = wire.recvmsg_into([buffer], _ANCILLARY, flags)
        arrived = time.perf_counter()
        if told:
            seconds, nanoseconds = _STAMP.unpack(told[0][2])
            arrived -= max(0, time.time_ns() - seconds * 10**9 - nanoseconds) / 1e9
        self._arrived = max(self._arrived, arrived)  # whatever the wall clock did meanwhile
        return count

    def _receive_head(self, wire: socket.socket, answer: Answer, begun: float) -> bytes:
        """Take in the head. Returns what came of the body with it."""
        data = b""
        while True:
            count = self._receive(wire, self._head)
            if not count:
                raise ConnectionResetError("the endpoint closed the connection")
            if not answer.ttfb:
                answer.ttfb = self._arrived - begun
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

    def _receive_body(self, wire: socket.socket, method: str, rest: bytes, keep: bool, answer: Answer) -> None:
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
            whole = b"\r\n" + rest
            while not whole.endswith(LAST_CHUNK):
                count = self._receive(wire, self._head)
                if not count:
                    raise ConnectionResetError("the answer was cut short")
                whole += self._head[:count]
            answer.received = len(whole) - 2
            answer.body = _unchunked(whole[2:]) if keep else b""


def _stamps(wire: socket.socket) -> bool:
    """Ask the kernel to say when bytes came; whether it will."""
    if sys.platform != "linux":
        return False
    try:
        wire.setsockopt(socket.SOL_SOCKET, STAMPS, 1)
    except OSError:
        return False
    return True


def _unchunked(data: bytes) -> bytes:
    """The body that chunks make up."""
    found: list[bytes] = []
    at = 0
    while True:
        end = data.index(b"\r\n", at)
        length = int(data[at:end].partition(b";")[0], 16)
        if not length:
            return b"".join(found)
        found.append(data[end + 2 : end + 2 + length])
        at = end + 4 + length
