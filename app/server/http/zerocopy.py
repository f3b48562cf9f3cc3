"""Sends files to sockets with os.sendfile, in threads that never wait for a client.

What the page cache holds is sent on the event loop, where the store allows it: a thread for each piece costs more than
sending it. The socket is duplicated first, because the descriptor number of a closed connection can be reused under a
thread. It is non-blocking: a call sends what the socket buffer takes and returns, and the event loop watches the
duplicate for writability.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from sluice_s3.app.server.http.interfaces import RequestConnection
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.storage_drivers.errors import DriverError, StoreFailed
from sluice_s3.storage_drivers.page_cache import is_cached

if TYPE_CHECKING:
    from sluice_s3.storage_drivers.base import FileSlice

MAX_BYTES_PER_CALL = 4 * 1024 * 1024
"""Bytes that one call sends at most, even to a fast reader."""
LOOK_AHEAD_BYTES = 16 * 1024 * 1024
"""Bytes that are looked for in the page cache at a time: that costs 5 µs a MiB, and a call often sends but one."""
CACHED_SECONDS = 0.5
"""Seconds for which found bytes count as cached. Evicted since, they are read on the event loop, from a local disk."""


class ClientGone(ConnectionError):
    """The connection is lost or abandoned: nothing more can be sent."""


class FileRequest(Protocol):
    """A request that is answered with a file."""

    state: HttpState
    connection: RequestConnection
    disconnected: bool


class _SharedSocket:
    """A duplicate socket and the file being sent on it. Both stay open while a thread uses them.

    Never wait for that thread once the mount of the file does not answer.
    """

    def __init__(self, out: socket.socket, opened: FileSlice | None) -> None:
        self.out = out
        self.opened = opened
        self._users = 1
        self._lock = Lock()

    def use(self) -> bool:
        """Count one more user; False when they are closed."""
        with self._lock:
            if not self._users:
                return False
            self._users += 1
            if self.opened is not None:
                self.opened.hold()
            return True

    def leave(self) -> None:
        """Count one user less."""
        if self.opened is not None:
            self.opened.let_go()
        self.close()

    def close(self) -> None:
        """Close the socket when nothing else uses it."""
        with self._lock:
            self._users -= 1
            unused = not self._users
        if unused:
            self.out.close()


async def send_file(
    cycle: FileRequest, head: bytes, file: int, offset: int, count: int, opened: FileSlice | None = None
) -> None:
    """Send `head`, then `count` bytes of the descriptor `file` at `offset`.

    `opened`, if set, owns the descriptor. Raises ClientGone when the reader is gone or stuck, and OSError when the file
    cannot be read or is too short: the connection then closes, since the announced length cannot be sent. On return the
    descriptor is no longer in use.
    """
    connection = cycle.connection
    await connection.wait_until_flushed()
    _check(cycle)
    out: socket.socket = connection.transport.get_extra_info("socket").dup()
    shared = _SharedSocket(out, opened)
    sending = _Sending(cycle, shared, head, file, offset, count)
    connection.out = out
    connection.write_progress = cycle.state.now
    try:
        while sending.left:
            if not sending.send_cached():
                sending.advance(*await _run_in_thread(cycle, shared, *sending.next_piece()))
                _check(cycle)
            if sending.left:
                await sending.wait()
                _check(cycle)
    except ConnectionError:
        connection.abort()
        _check(cycle)
        raise
    except OSError:
        connection.abort()
        raise
    except DriverError:  # abandoned, perhaps with a thread that hangs
        connection.abort()
        shutdown_socket(out)
        raise ClientGone from None
    finally:
        sending.close()
        connection.out = None
        shared.close()


def _check(cycle: FileRequest) -> None:
    if cycle.disconnected:
        raise ClientGone


async def _run_in_thread(
    cycle: FileRequest, shared: _SharedSocket, head: bytes, file: int, offset: int, count: int
) -> tuple[int, int]:
    out = shared.out
    work = partial(_send_and_leave, shared, head, file, offset, count)
    try:
        future = shared.opened.hop(work) if shared.opened else cycle.state.loop.run_in_executor(cycle.state.pool, work)
    except RuntimeError as error:
        raise StoreFailed("the store is closed") from error
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        # the thread may still use both descriptors, and the caller would close them now
        shutdown_socket(out)
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                continue
        if not future.cancelled():
            future.exception()
        raise


def _send_and_leave(shared: _SharedSocket, head: bytes, file: int, offset: int, count: int) -> tuple[int, int]:
    if not shared.use():
        raise ClientGone
    try:
        return _send_some(shared.out, head, file, offset, count)
    finally:
        shared.leave()


def _send_some(out: socket.socket, head: bytes, file: int, offset: int, count: int) -> tuple[int, int]:
    """Send what the socket takes at once, and return the bytes of the head and of the file that it took.

    A short count is not followed by a second call: most often the socket is full, and the refusal costs more than a
    turn of the event loop.
    """
    sent_head = 0
    try:
        if head:
            sent_head = out.send(head, socket.MSG_MORE if count else 0)
            if sent_head < len(head):
                return sent_head, 0
        if not count:
            return sent_head, 0
        sent = os.sendfile(out.fileno(), file, offset, count)
    except BlockingIOError:
        return sent_head, 0
    if not sent:
        raise OSError(errno.EIO, "a file ended before the length that was promised of it")
    return sent_head, sent


class _Sending:
    """What is left to send of a file, and the wait until the socket takes more.

    The event loop watches the socket from the first wait to `close`. Its callback sends what the page cache holds: to
    resume the coroutines of a request for each piece costs as much as sending it. The watch ends early when the socket
    is writable and nothing waits: the loop would report it again and again.
    """

    def __init__(
        self, cycle: FileRequest, shared: _SharedSocket, head: bytes, file: int, offset: int, count: int
    ) -> None:
        self._cycle = cycle
        self._out = shared.out
        self._head = head
        self._file = file
        self._offset = offset
        self._count = count
        self._may_send = shared.opened is not None and shared.opened.nowait
        self._cached_end = 0
        self._cached_until = 0.0
        self._full = False
        self._watched = False

    @property
    def left(self) -> bool:
        """Whether anything is left to send."""
        return bool(self._count or self._head)

    def next_piece(self) -> tuple[bytes, int, int, int]:
        """Return the arguments of `_send_some` for the next piece."""
        return self._head, self._file, self._offset, self._limit

    @property
    def _limit(self) -> int:
        return min(self._count, MAX_BYTES_PER_CALL)

    def send_cached(self) -> bool:
        """Send the next piece if the page cache has it; False if it has not. Raises OSError."""
        if not (self._may_send and self._is_cached()):
            return False
        self.advance(*_send_some(self._out, *self.next_piece()))
        return True

    def _is_cached(self) -> bool:
        now = self._cycle.state.loop.time()
        if now < self._cached_until and self._offset + self._limit <= self._cached_end:
            return True
        length = min(self._count, LOOK_AHEAD_BYTES)
        if not is_cached(self._file, self._offset, length):
            return False
        self._cached_end = self._offset + length
        self._cached_until = now + CACHED_SECONDS
        return True

    def advance(self, sent_head: int, sent: int) -> None:
        """Note what was sent of the next piece."""
        self._full = sent_head < len(self._head) or sent < self._limit
        self._head = self._head[sent_head:]
        self._offset += sent
        self._count -= sent
        if sent_head or sent:
            self._cycle.connection.write_progress = self._cycle.state.now

    async def wait(self) -> None:
        """Wait until the connection is lost, all is sent, or the socket takes what is not in the page cache.

        If the socket is not full and not watched yet, only let others run. Raises OSError.
        """
        if not self._full and not self._watched:
            await asyncio.sleep(0)
            return
        loop, connection = self._cycle.state.loop, self._cycle.connection
        waiter: asyncio.Future[None] = loop.create_future()
        connection.out_waiter = waiter
        if not self._watched:
            loop.add_writer(self._out, self._go_on)
            self._watched = True
        try:
            await waiter
        finally:
            connection.out_waiter = None

    def close(self) -> None:
        """End the watch. A second call is no error."""
        if self._watched:
            self._watched = False
            self._cycle.state.loop.remove_writer(self._out)

    def _go_on(self) -> None:
        waiter = self._cycle.connection.out_waiter
        if waiter is None:
            self.close()
        elif not waiter.done():
            try:
                if self.send_cached() and self.left:
                    return
            except OSError as error:
                waiter.set_exception(error)
            else:
                waiter.set_result(None)


def shutdown_socket(out: socket.socket) -> None:
    """Shut down the connection under a duplicate. A thread sending on it fails, and no more bytes go out."""
    try:
        out.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is no longer connected
