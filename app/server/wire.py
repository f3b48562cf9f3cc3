"""One connection's two directions: what is held back, what is cut off, and how it ends. Knows nothing of HTTP."""

from __future__ import annotations

import asyncio
import fcntl
import select
import socket
import struct
import termios
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from app.server.state import WorkerState

LINGER = 2.0
"""Seconds that a connection is read on after an early end, so that its client can read the answer."""
LINGER_BYTES = 4 * 1024 * 1024
WRITE_HIGH = 64 * 1024
"""Bytes that wait in the transport before `send` waits."""


class Wire(asyncio.Protocol):
    """The part of a connection that is the same whatever is spoken on it."""

    def __init__(self, state: WorkerState) -> None:
        self.state = state
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.deaf = False
        """No more requests are taken from this connection."""
        self.linger_until = 0.0
        self.linger_left = LINGER_BYTES
        self.read_paused = False
        self.write_paused = False
        self.write_size = 0
        self.write_progress = state.now
        self.drain_waiter: asyncio.Future[None] | None = None
        self.out: socket.socket | None = None
        """The duplicate that a file is being sent on."""
        self.out_waiter: asyncio.Future[None] | None = None

    # reading
    def pause_reading(self) -> None:
        """Stop taking bytes from the socket."""
        if not self.read_paused and not self.transport.is_closing():
            self.read_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Take bytes again."""
        if self.read_paused and not self.transport.is_closing():
            self.read_paused = False
            self.transport.resume_reading()

    def readable(self) -> bool:
        """Bytes (or an end) have come that the loop has not seen yet."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def discard(self, size: int) -> None:
        """Bytes that nobody wants: counted while lingering, else left in the socket."""
        if not self.linger_until:
            self.pause_reading()
            return
        self.linger_left -= size
        if self.linger_left < 0:
            self.transport.close()

    # writing
    def pause_writing(self) -> None:
        """The reader is behind."""
        self.write_paused = True

    def resume_writing(self) -> None:
        """The reader has caught up (or is gone)."""
        self.write_paused = False
        waiter, self.drain_waiter = self.drain_waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def drained(self) -> None:
        """Return once the transport's buffer is below its mark, or the connection is lost."""
        while self.write_paused:
            if self.drain_waiter is None or self.drain_waiter.done():
                self.drain_waiter = self.state.loop.create_future()
            await asyncio.shield(self.drain_waiter)

    async def flushed(self) -> None:
        """Return once the transport's buffer is empty, or the connection is lost."""
        transport = self.transport
        if not transport.get_write_buffer_size() or transport.is_closing():
            return
        transport.set_write_buffer_limits(high=0)
        await self.drained()
        if not transport.is_closing():
            transport.set_write_buffer_limits(high=WRITE_HIGH)

    def reader_stuck(self, now: float, limit: float) -> bool:
        """Something is to be sent, and for `limit` seconds the reader took nothing of it.

        Not measured by what the kernel takes: it waits for a third of its buffer, MiB, and a slow reader needs longer.
        """
        size = self.transport.get_write_buffer_size()
        if size or self.out is not None:
            size += _unacknowledged(self.transport.get_extra_info("socket").fileno())
        if not size or size != self.write_size:
            self.write_size = size
            self.write_progress = now
            return False
        return now - self.write_progress > limit

    def is_read_from(self) -> bool:
        """The other side has not acknowledged all that was written."""
        transport = self.transport
        if transport.get_write_buffer_size():
            return True
        return _unacknowledged(transport.get_extra_info("socket").fileno()) > 0

    # the end
    def end(self, linger: bool) -> None:
        """Close once everything is written; `linger` reads on for a while, lest a reset destroys the answer."""
        self.deaf = True
        if not linger or self.transport.is_closing():
            self.transport.close()
            return
        self.linger_until = self.state.loop.time() + LINGER
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.resume_reading()


def _unacknowledged(fd: int) -> int:
    """Bytes in a socket's send queue that the other side has not acknowledged (tcp(7), SIOCOUTQ)."""
    try:
        (size,) = struct.unpack("i", fcntl.ioctl(fd, termios.TIOCOUTQ, bytes(4)))
    except OSError:  # it is being closed
        return 0
    return int(size)
