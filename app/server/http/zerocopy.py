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
    writable = _Writability(cycle, out)
    connection.out = out
    connection.write_progress = cycle.state.now
    try:
        while head or count:
            limit = min(count, MAX_BYTES_PER_CALL)
            if opened is not None and opened.nowait and is_cached(file, offset, limit):
                sent_head, sent = _send_some(out, head, file, offset, limit)
            else:
                sent_head, sent = await _run_in_thread(cycle, shared, head, file, offset, limit)
                _check(cycle)
            head = head[sent_head:]
            offset += sent
            count -= sent
            if sent_head or sent:
                connection.write_progress = cycle.state.now
            if head or count:
                await writable.wait(full=bool(head) or sent < limit)
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
        writable.close()
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
    sent_head = sent = 0
    try:
        if head:
            sent_head = out.send(head, socket.MSG_MORE if count else 0)
            if sent_head < len(head):
                return sent_head, 0
        while sent < count:
            size = os.sendfile(out.fileno(), file, offset + sent, count - sent)
            if size == 0:
                raise OSError(errno.EIO, "a file ended before the length that was promised of it")
            sent += size
    except BlockingIOError:
        pass
    return sent_head, sent


class _Writability:
    """The wait until a socket takes more. The event loop watches it from the first wait to `close`.

    The watch ends early when the socket is writable and nothing waits: the loop would report it again and again.
    """

    def __init__(self, cycle: FileRequest, out: socket.socket) -> None:
        self._loop = cycle.state.loop
        self._connection = cycle.connection
        self._out = out
        self._watched = False

    async def wait(self, *, full: bool) -> None:
        """Wait until the socket is writable, or the connection is lost.

        If it is not `full` and not watched yet, only let others run.
        """
        if not full and not self._watched:
            await asyncio.sleep(0)
            return
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._connection.out_waiter = waiter
        if not self._watched:
            self._loop.add_writer(self._out, self._wake)
            self._watched = True
        try:
            await waiter
        finally:
            self._connection.out_waiter = None

    def close(self) -> None:
        """End the watch. A second call is no error."""
        if self._watched:
            self._watched = False
            self._loop.remove_writer(self._out)

    def _wake(self) -> None:
        waiter = self._connection.out_waiter
        if waiter is None:
            self.close()
        elif not waiter.done():
            waiter.set_result(None)


def shutdown_socket(out: socket.socket) -> None:
    """Shut down the connection under a duplicate. A thread sending on it fails, and no more bytes go out."""
    try:
        out.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is no longer connected
