"""The two directions of one connection: backpressure, stuck readers and the end. Knows nothing of HTTP."""

from __future__ import annotations

import asyncio
import fcntl
import select
import socket
import struct
import termios
from typing import cast

from sluice_s3.app.server.http.interfaces import CallbackSender
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.app.server.http.zerocopy import ClientGone, shutdown_socket

LINGER_SECONDS = 2.0
"""Seconds of reading after an early end, so that the client can read the answer."""
LINGER_BYTES = 4 * 1024 * 1024
WRITE_HIGH_BYTES = 64 * 1024
"""Bytes in the transport's buffer above which `send` waits."""


class FlowControl(asyncio.Protocol):
    """The part of a connection that does not depend on the protocol."""

    def __init__(self, state: HttpState) -> None:
        self.state = state
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.input_closed = False
        """No further requests are taken from this connection."""
        self.linger_until = 0.0
        self.linger_left = LINGER_BYTES
        self.swept_at = state.now
        """The time of the last sweep."""
        self.read_paused = False
        self.write_paused = False
        self.write_size = 0
        self.write_progress = state.now
        self.drain_waiter: asyncio.Future[None] | None = None
        self.out: socket.socket | None = None
        """The duplicate socket on which a file waits for room, or a thread sends it."""
        self.sender: CallbackSender | None = None
        """Sends a file in callbacks."""

    # reading
    def pause_reading(self) -> None:
        """Stop taking bytes from the socket."""
        if not self.read_paused and not self.transport.is_closing():
            self.read_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume taking bytes."""
        if self.read_paused and not self.transport.is_closing():
            self.read_paused = False
            self.transport.resume_reading()

    def is_readable(self) -> bool:
        """Return whether bytes or an end have arrived that the loop has not seen."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def discard(self, size: int) -> None:
        """Drop unwanted bytes: counted while lingering, else the socket is paused."""
        if not self.linger_until:
            self.pause_reading()
            return
        self.linger_left -= size
        if self.linger_left < 0:
            self.transport.close()

    # writing
    def pause_writing(self) -> None:
        """Mark the reader as slow."""
        self.write_paused = True

    def resume_writing(self) -> None:
        """Wake the writer once the reader has caught up or is gone."""
        self.write_paused = False
        waiter, self.drain_waiter = self.drain_waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def wait_until_drained(self) -> None:
        """Wait until the transport's buffer is below its mark, or the connection is lost."""
        while self.write_paused:
            if self.drain_waiter is None or self.drain_waiter.done():
                self.drain_waiter = self.state.loop.create_future()
            await asyncio.shield(self.drain_waiter)

    async def wait_until_flushed(self) -> None:
        """Wait until the transport's buffer is empty, or the connection is lost."""
        transport = self.transport
        if not transport.get_write_buffer_size() or transport.is_closing():
            return
        transport.set_write_buffer_limits(high=0)
        await self.wait_until_drained()
        if not transport.is_closing():
            transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES)

    def is_reader_stuck(self, now: float, limit: float) -> bool:
        """Return whether the reader has taken none of the pending bytes for `limit` seconds.

        Writability is no measure: the kernel waits until a third of its buffer (MiB) is free, and a slow reader needs
        longer.
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
        """Return whether the peer has not yet acknowledged all that was written."""
        transport = self.transport
        if transport.get_write_buffer_size():
            return True
        return _unacknowledged(transport.get_extra_info("socket").fileno()) > 0

    # the end
    def cut_file(self) -> None:
        """End the sending of a file, if there is one: its thread fails, and its request ends."""
        if self.out is not None:
            shutdown_socket(self.out)
        if self.sender is not None:
            self.sender.end(ClientGone())

    def end(self, linger: bool) -> None:
        """Close once everything is written; `linger` reads on, so that no reset destroys the answer."""
        self.input_closed = True
        if not linger or self.transport.is_closing():
            self.transport.close()
            return
        self.linger_until = self.state.loop.time() + LINGER_SECONDS
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.resume_reading()


def _unacknowledged(fd: int) -> int:
    """Return the bytes in a socket's send queue without acknowledgement (tcp(7), SIOCOUTQ)."""
    try:
        (size,) = struct.unpack("i", fcntl.ioctl(fd, termios.TIOCOUTQ, bytes(4)))
    except OSError:  # the socket is being closed
        return 0
    return int(size)
