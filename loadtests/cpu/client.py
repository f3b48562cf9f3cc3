"""A cheap client: one thread, raw sockets under epoll, and prepared requests.

Every connection has one request under way. The client parses only the status and framing of an answer's head, and drops
most of a large body inside the kernel (`MSG_TRUNC`). So one core can drive a server that has another.
"""

from __future__ import annotations

import gc
import itertools
import select
import socket
import ssl
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sluice_s3.loadtests.common.tls import TlsSocket

HEAD_BYTES = 16 * 1024
"""Bytes of the first read: enough for a small object's whole answer."""
DRAIN_BYTES = 1024 * 1024
STALLED = 60.0
"""Seconds without progress after which the run is given up."""
LAST_CHUNK = b"\r\n0\r\n\r\n"


class Stalled(Exception):
    """No connection made progress for `STALLED` seconds."""


class Request(NamedTuple):
    """A prepared request.

    `size` is the required length of the answer's body in bytes, -1 for any.
    """

    head: bytes
    body: memoryview | None = None
    size: int = -1
    bodiless: bool = False
    """Whether the answer has no body whatever its head says (HEAD)."""
    number: int = 0
    waits: bool = False
    """Whether the body is sent only after 100 Continue."""


@dataclass
class Outcome:
    """The result of a run.

    `elapsed` is the seconds from the first request to the last answer.
    """

    elapsed: float = 0.0
    latencies: list[float] = field(default_factory=list)
    """Seconds from a request's first byte to its answer's last, of the successful answers."""
    errors: Counter[str] = field(default_factory=Counter)
    moved: int = 0
    """Bytes of bodies in both directions."""
    requests: int = 0
    heads: dict[int, bytes] = field(default_factory=dict)
    """Heads of the answers by the request's number, if they were requested."""


class Connection:
    """One socket and the request under way on it."""

    __slots__ = (
        "chunked",
        "close",
        "fd",
        "good",
        "left",
        "partial",
        "pending",
        "request",
        "socket",
        "started",
        "tail",
        "waiting",
    )

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None) -> None:
        plain = socket.create_connection(address, timeout=STALLED)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = plain if tls is None else TlsSocket(tls, plain)
        self.socket.setblocking(False)
        self.fd = self.socket.fileno()
        self.request: Request | None = None
        self.reset()

    def reset(self) -> None:
        """Prepare for the next request."""
        self.pending: list[memoryview] = []
        self.partial = self.tail = b""
        self.left = -1
        self.started = 0.0
        self.waiting: memoryview | None = None
        """The body that is sent after 100 Continue."""
        self.chunked = self.close = self.good = False


class Client:
    """`connections` keep-alive connections to one endpoint, or to several that serve the same data."""

    def __init__(
        self,
        address: tuple[str, int],
        connections: int,
        more_addresses: Sequence[tuple[str, int]] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls
        self._addresses = itertools.cycle((address, *more_addresses))
        self._epoll = select.epoll()
        self._by_fd: dict[int, Connection] = {}
        self._head = bytearray(HEAD_BYTES)
        self._drain = bytearray(DRAIN_BYTES)
        self._busy = 0
        self._feed: Iterator[Request] = iter(())
        self._deadline = 0.0
        self._keep_heads = False
        self._outcome = Outcome()
        for _ in range(connections):
            self._open()

    def close(self) -> None:
        """Close every connection."""
        for connection in self._by_fd.values():
            connection.socket.close()
        self._by_fd.clear()
        self._epoll.close()

    def run(self, requests: Iterable[Request], seconds: float, *, keep_heads: bool = False) -> Outcome:
        """Send requests for `seconds` or until none are left, and wait for the last answer.

        Raises Stalled, and OSError when the endpoint cannot be reached.
        """
        self._feed = iter(requests)
        self._keep_heads = keep_heads
        outcome = self._outcome = Outcome()
        self._busy = 0
        gc.collect()
        gc.disable()
        try:
            start = time.perf_counter()
            self._deadline = start + seconds
            for connection in list(self._by_fd.values()):
                self._next(connection, start)
            while self._busy:
                events = self._epoll.poll(STALLED)
                if not events:
                    raise Stalled(f"no answer for {STALLED:.0f} s")
                self._handle(events)
            outcome.elapsed = time.perf_counter() - start
        finally:
            gc.enable()
        return outcome

    def _handle(self, events: list[tuple[int, int]]) -> None:
        """Send and receive what these events of the poll say."""
        for fd, event in events:
            connection = self._by_fd[fd]
            if event & select.EPOLLOUT and connection.pending:
                self._send(connection)
            if event & ~select.EPOLLOUT:
                self._receive(connection)

    def _open(self) -> Connection:
        connection = Connection(next(self._addresses), self._tls)
        self._by_fd[connection.fd] = connection
        self._epoll.register(connection.fd, select.EPOLLIN)
        return connection

    def _next(self, connection: Connection, now: float) -> None:
        request = next(self._feed, None) if now < self._deadline else None
        connection.request = request
        if request is None:
            return
        self._busy += 1
        self._outcome.requests += 1
        connection.started = now
        try:
            self._start(connection, request)
        except OSError:  # closed by the server while it was idle
            connection = self._replace(connection)
            connection.request, connection.started = request, now
            self._start(connection, request)

    def _start(self, connection: Connection, request: Request) -> None:
        body = request.body
        if request.waits:
            connection.waiting, body = body, None
        if body is None:
            sent = connection.socket.send(request.head)
            if sent == len(request.head):
                return
            connection.pending = [memoryview(request.head)[sent:]]
        else:
            sent = connection.socket.sendmsg((request.head, body))
            rest = sent - len(request.head)
            if rest == len(body):
                return
            connection.pending = [body[rest:]] if rest >= 0 else [memoryview(request.head)[sent:], body]
        self._send(connection)

    def _send(self, connection: Connection) -> None:
        pending = connection.pending
        try:
            while pending:
                sent = connection.socket.send(pending[0])
                if sent == len(pending[0]):
                    pending.pop(0)
                else:
                    pending[0] = pending[0][sent:]
        except BlockingIOError:
            self._epoll.modify(connection.fd, select.EPOLLIN | select.EPOLLOUT)
            return
        except OSError:
            pending.clear()  # refused before the body was complete: the answer, or the end, is readable
        self._epoll.modify(connection.fd, select.EPOLLIN)

    def _receive(self, connection: Connection) -> None:
        try:
            if connection.left > 0:
                count = connection.socket.recv_into(self._drain, DRAIN_BYTES, socket.MSG_TRUNC)
                connection.left -= count
                whole = connection.left <= 0
            else:
                count = connection.socket.recv_into(self._head)
                whole = count > 0 and self._parse(connection, count)
        except BlockingIOError:
            return
        except OSError:
            count, whole = 0, False
        if whole:
            self._finish(connection)
        elif not count:
            self._reconnect(connection)

    def _parse(self, connection: Connection, count: int) -> bool:
        """Parse `count` bytes of a head or a chunked body.

        Returns True when the answer is complete.
        """
        if connection.chunked:
            connection.tail = (connection.tail + self._head[:count])[-len(LAST_CHUNK) :]
            return connection.tail == LAST_CHUNK
        data: bytes | bytearray = self._head
        if connection.partial:
            data = connection.partial + self._head[:count]
            count = len(data)
        end = data.find(b"\r\n\r\n", 0, count)
        if end < 0:
            connection.partial = bytes(data[:count])
            return False
        request = connection.request
        if request is None:
            return False
        status = bytes(data[9:12])
        if status == b"100":
            return self._continue(connection, bytes(data[end + 4 : count]))
        head = data[:end].lower()
        length = self._frame(connection, head, status, request)
        connection.good = status[0] == 50 and (request.size < 0 or length == request.size)
        if not connection.good:
            self._outcome.errors[status.decode() if status[0] != 50 else "wrong length"] += 1
        if self._keep_heads:
            self._outcome.heads[request.number] = bytes(data[:end])
        if connection.chunked:
            connection.tail = bytes(data[max(end + 2, count - len(LAST_CHUNK)) : count])
            return connection.tail == LAST_CHUNK
        connection.left = length - (count - end - 4)
        self._outcome.moved += length
        return connection.left <= 0

    def _continue(self, connection: Connection, rest: bytes) -> bool:
        """Send the body that waits, if any. `rest` came behind the interim answer: the head of the other.

        Return True if that is a complete answer.
        """
        connection.partial = b""
        if connection.waiting is not None:
            connection.pending, connection.waiting = [connection.waiting], None
            self._send(connection)
        self._head[: len(rest)] = rest
        return bool(rest) and self._parse(connection, len(rest))

    @staticmethod
    def _frame(connection: Connection, head: bytes | bytearray, status: bytes, request: Request) -> int:
        """Return the length of the body after the head, 0 if it is chunked."""
        connection.close = b"\r\nconnection: close" in head
        if request.bodiless or status in (b"204", b"304"):
            return 0
        at = head.find(b"\r\ncontent-length:")
        if at >= 0:
            end = head.find(b"\r\n", at + 17)
            return int(head[at + 17 : end if end >= 0 else len(head)])
        connection.chunked = b"\r\ntransfer-encoding: chunked" in head
        return 0

    def _finish(self, connection: Connection) -> None:
        now = time.perf_counter()
        outcome = self._outcome
        self._busy -= 1
        request = connection.request
        if connection.good:
            outcome.latencies.append(now - connection.started)
            if request is not None and request.body is not None:
                outcome.moved += len(request.body)
        if connection.close or connection.pending or connection.waiting is not None:
            connection = self._replace(connection)
        else:
            connection.partial = b""
            connection.left = -1
            connection.chunked = False
        self._next(connection, now)

    def _reconnect(self, connection: Connection) -> None:
        is_active = connection.request is not None
        connection = self._replace(connection)
        if is_active:
            self._busy -= 1
            self._outcome.errors["connection lost"] += 1
            self._next(connection, time.perf_counter())

    def _replace(self, connection: Connection) -> Connection:
        self._drop(connection)
        return self._open()

    def _drop(self, connection: Connection) -> None:
        self._epoll.unregister(connection.fd)
        del self._by_fd[connection.fd]
        connection.socket.close()
