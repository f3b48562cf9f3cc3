"""Sends files to sockets with os.sendfile, in threads that never wait for a client.

The socket is duplicated first, because the descriptor number of a closed connection can be reused under a thread. It is
non-blocking: a call sends what the socket buffer takes and returns, and the event loop watches the duplicate for
writability.
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

if TYPE_CHECKING:
    from sluice_s3.storage_drivers.base import FileSlice

MAX_BYTES_PER_CALL = 2 * 1024 * 1024
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
    connection.out = out
    connection.write_progress = cycle.state.now
    try:
        while head or count:
            sent_head, sent = await _run_in_thread(cycle, shared, head, file, offset, count)
            _check(cycle)
            head = head[sent_head:]
            offset += sent
            count -= sent
            if sent_head or sent:
                connection.write_progress = cycle.state.now
            if (head or count) and sent < MAX_BYTES_PER_CALL:
                await _writable(cycle, out)
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
        limit = min(count, MAX_BYTES_PER_CALL)
        while sent < limit:
            size = os.sendfile(out.fileno(), file, offset + sent, limit - sent)
            if size == 0:
                raise OSError(errno.EIO, "a file ended before the length that was promised of it")
            sent += size
    except BlockingIOError:
        pass
    return sent_head, sent


async def _writable(cycle: FileRequest, out: socket.socket) -> None:
    loop = cycle.state.loop
    waiter: asyncio.Future[None] = loop.create_future()
    cycle.connection.out_waiter = waiter
    loop.add_writer(out, _set, waiter)
    try:
        await waiter
    finally:
        cycle.connection.out_waiter = None
        loop.remove_writer(out)


def _set(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def shutdown_socket(out: socket.socket) -> None:
    """Shut down the connection under a duplicate. A thread sending on it fails, and no more bytes go out."""
    try:
        out.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is no longer connected
