"""Files straight to sockets: os.sendfile in threads that never wait for a client.

The socket is duplicated first, because a closed connection's descriptor number can be reused under a thread, and is
non-blocking: a hop sends what the socket buffer takes and returns, and the event loop watches the duplicate for
writability.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from storage_drivers.errors import DriverError, StoreFailed

if TYPE_CHECKING:
    from app.server.cycle import Cycle
    from storage_drivers.base import FileSlice

HOP = 2 * 1024 * 1024
"""Bytes a hop sends at most, should the reader be as fast as the thread."""


class ClientGone(ConnectionError):
    """The connection is lost, or was given up: nothing can be sent any more."""


class _Kept:
    """A duplicate of a socket, and the file that is sent on it. Both stay open while a thread uses them.

    Nobody may wait for that thread any more, when the mount of the file does not answer.
    """

    def __init__(self, out: socket.socket, opened: FileSlice | None) -> None:
        self.out = out
        self.opened = opened
        self._users = 1
        self._lock = Lock()

    def use(self) -> bool:
        """A thread is about to use them; False when they are closed."""
        with self._lock:
            if not self._users:
                return False
            self._users += 1
            if self.opened is not None:
                self.opened.hold()
            return True

    def leave(self) -> None:
        """A thread is done."""
        if self.opened is not None:
            self.opened.let_go()
        self.close()

    def close(self) -> None:
        """Close the socket when nobody else uses it."""
        with self._lock:
            self._users -= 1
            unused = not self._users
        if unused:
            self.out.close()


async def send_file(
    cycle: Cycle, head: bytes, file: int, offset: int, count: int, opened: FileSlice | None = None
) -> None:
    """Send `head`, then `count` bytes at `offset` of the descriptor `file`, which is that of `opened`, if given.

    Raises ClientGone when the reader is gone or stuck, OSError when the file cannot be read or is too short (the
    connection is then ended: what was promised cannot be kept). The descriptor is not used any more on return.
    """
    connection = cycle.connection
    await connection.flushed()
    _check(cycle)
    out: socket.socket = connection.transport.get_extra_info("socket").dup()
    kept = _Kept(out, opened)
    connection.out = out
    connection.write_progress = cycle.state.now
    try:
        while head or count:
            sent_head, sent = await _hop(cycle, kept, head, file, offset, count)
            _check(cycle)
            head = head[sent_head:]
            offset += sent
            count -= sent
            if sent_head or sent:
                connection.write_progress = cycle.state.now
            if (head or count) and sent < HOP:
                await _writable(cycle, out)
                _check(cycle)
    except ConnectionError:
        connection.abort()
        _check(cycle)
        raise
    except OSError:
        connection.abort()
        raise
    except DriverError:  # given up, and perhaps a thread hangs with it
        connection.abort()
        shut(out)
        raise ClientGone from None
    finally:
        connection.out = None
        kept.close()


def _check(cycle: Cycle) -> None:
    if cycle.disconnected:
        raise ClientGone


async def _hop(cycle: Cycle, kept: _Kept, head: bytes, file: int, offset: int, count: int) -> tuple[int, int]:
    out = kept.out
    work = partial(_send_and_leave, kept, head, file, offset, count)
    try:
        future = kept.opened.hop(work) if kept.opened else cycle.state.loop.run_in_executor(cycle.state.pool, work)
    except RuntimeError as error:
        raise StoreFailed("the store is closed") from error
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        # the thread may still be using both descriptors, and the caller would close them now
        shut(out)
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                continue
        if not future.cancelled():
            future.exception()
        raise


def _send_and_leave(kept: _Kept, head: bytes, file: int, offset: int, count: int) -> tuple[int, int]:
    if not kept.use():
        raise ClientGone
    try:
        return _send_some(kept.out, head, file, offset, count)
    finally:
        kept.leave()


def _send_some(out: socket.socket, head: bytes, file: int, offset: int, count: int) -> tuple[int, int]:
    sent_head = sent = 0
    try:
        if head:
            sent_head = out.send(head, socket.MSG_MORE if count else 0)
            if sent_head < len(head):
                return sent_head, 0
        limit = min(count, HOP)
        while sent < limit:
            size = os.sendfile(out.fileno(), file, offset + sent, limit - sent)
            if size == 0:
                raise OSError(errno.EIO, "a file ended before the length that was promised of it")
            sent += size
    except BlockingIOError:
        pass
    return sent_head, sent


async def _writable(cycle: Cycle, out: socket.socket) -> None:
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


def shut(out: socket.socket) -> None:
    """End the connection under a duplicate: a thread that sends on it fails, and no byte more goes out."""
    try:
        out.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is not connected any more
