"""Sends files to sockets with os.sendfile, on the event loop or in threads that never wait for a client.

What the page cache holds is sent on the event loop, where the store allows it: a thread for each piece costs more than
sending it. The socket is non-blocking: a call sends what its buffer takes, and the loop reports when there is room
again. The transport watches its descriptor already, so the loop watches a duplicate of it. A thread uses a duplicate,
too, because the descriptor number of a closed connection can be reused under it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from threading import Lock
from typing import Protocol

from sluice_s3.app.server.http.interfaces import RequestConnection
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.storage_drivers.base import FileSlice
from sluice_s3.storage_drivers.errors import BlobDamaged, DriverError, StoreFailed
from sluice_s3.storage_drivers.page_cache import is_cached

THREAD_BYTES = 4 * 1024 * 1024
"""Bytes that a thread sends in one call at most, even to a fast reader."""
CACHED_BYTES = 16 * 1024 * 1024
"""The same on the event loop, about 2 ms; so many are looked for in the page cache at a time, at 5 µs a MiB."""
CACHED_SECONDS = 0.5
"""Seconds for which found bytes count as cached. Evicted since, they are read on the event loop, from a local disk."""
CUT_SHORT = "a file ended before the length that was promised"
COPIED_BYTES = 16 * 1024
"""Bytes of a head and of the file behind it that are copied for one write."""


class ClientGone(ConnectionError):
    """The connection is lost or abandoned: nothing more can be sent."""


class FileRequest(Protocol):
    """A request that is answered with a file."""

    state: HttpState
    connection: RequestConnection
    disconnected: bool


class FileSender:
    """Sends a head and a file on the event loop, as long as the page cache holds the next piece.

    What is sent is no longer in the slice. From `run` on the loop's reports that the socket has room continue it, until
    it calls `on_end`: with None when everything is sent or the next piece is not cached, else with the error. To resume
    the coroutines of a request for each piece would cost as much as sending it.
    """

    def __init__(self, state: HttpState, connection: RequestConnection, head: bytes, file: FileSlice) -> None:
        self._state = state
        self._connection = connection
        self.head = head
        """Bytes that are sent before the rest of the slice."""
        self._file = file
        self._cached_end = 0
        self._cached_until = 0.0
        self._is_full = False
        """The socket did not take all of the last piece."""
        self._watch: _RoomWatch | None = None
        self._on_end: Callable[[Exception | None], None] | None = None

    @property
    def left(self) -> bool:
        """Whether anything is left to send."""
        return bool(self._file.count or self.head)

    @property
    def _needs_watch(self) -> bool:
        """Whether the socket is full, and nothing reports yet that it has room."""
        return self._is_full and self._watch is None

    def send_cached(self) -> bool:
        """Send the next piece if the page cache holds it; False if it does not, or if earlier bytes wait.

        Raises OSError and BlobDamaged.
        """
        transport = self._connection.transport
        if transport.get_write_buffer_size() or not self._is_cached():
            return False
        count = min(self._file.count, CACHED_BYTES)
        out = self._watch.fd if self._watch is not None else transport.get_extra_info("socket").fileno()
        taken, head = _send_some(out, self.head, self._file.fd, self._file.offset, count)
        self._is_full = taken < count or bool(head)
        self.advance(taken, head)
        return True

    def _is_cached(self) -> bool:
        file = self._file
        if not file.nowait:
            return False
        now, length = self._state.loop.time(), min(file.count, CACHED_BYTES)
        if now < self._cached_until and file.offset + length <= self._cached_end:
            return True
        if not is_cached(file.fd, file.offset, length):
            return False
        self._cached_end, self._cached_until = file.offset + length, now + CACHED_SECONDS
        return True

    def advance(self, taken: int, head: bytes) -> None:
        """Note that `taken` bytes left the slice. Those of them that are not sent are at the end of `head`."""
        self.head = head
        self._file.offset += taken
        self._file.count -= taken
        self._connection.write_progress = self._state.now

    def run(self, on_end: Callable[[Exception | None], None]) -> None:
        """Send until everything is sent, the next piece is not cached, or an error; then call `on_end`."""
        self._on_end = on_end
        self._connection.sender = self
        self._go_on()

    def _go_on(self) -> None:
        """Send the next piece; called again when the socket has room."""
        error = None
        try:
            if self.left and (self._needs_watch or self.send_cached()) and self.left:
                self._watch = self._watch or _RoomWatch(self._state.loop, self._connection, self._go_on)
                return
        except (OSError, DriverError) as failure:
            error = failure
        self.end(error)

    def end(self, error: Exception | None) -> None:
        """Stop, and report the end."""
        self._connection.sender = None
        self._is_full = False  # a thread may send next
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        on_end, self._on_end = self._on_end, None  # else a reference cycle with the request
        if on_end is not None:
            on_end(error)


class _RoomWatch:
    """Calls back while the socket of a connection has room. After a failure it may do so once only: then close it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, connection: RequestConnection, callback: Callable[[], object]
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._out: socket.socket = connection.transport.get_extra_info("socket").dup()
        self.fd = self._out.fileno()
        try:
            loop.add_writer(self.fd, callback)
        except BaseException:
            self._out.close()
            raise
        connection.out = self._out

    def close(self) -> None:
        """End the watch, and close the duplicate."""
        self._loop.remove_writer(self.fd)
        self._connection.out = None
        self._out.close()


async def send_file(cycle: FileRequest, head: bytes, file: FileSlice) -> None:
    """Send `head`, then the bytes of a slice, which it leaves empty.

    Raises ClientGone when the reader is gone or stuck, OSError or DriverError when the file cannot be read or is too
    short: the connection then closes, since the announced length cannot be sent. The descriptor is no longer in use
    then, but by the thread of an abandoned store.
    """
    connection, loop = cycle.connection, cycle.state.loop
    sender = FileSender(cycle.state, connection, head, file)
    try:
        await connection.wait_until_flushed()
        if connection.transport.is_closing():  # it may still hold bytes that belong before the file
            raise ClientGone
        while sender.left:
            await _send_cached(sender, loop)
            _check(cycle)
            if sender.left:
                sender.advance(*await _send_in_thread(cycle, sender.head, file))
                _check(cycle)
            if sender.left:
                await _wait_for_room(loop, connection)
                _check(cycle)
    except ConnectionError:
        connection.abort()
        raise ClientGone from None
    except (OSError, DriverError):
        connection.abort()
        raise
    finally:
        sender.end(None)


def _check(cycle: FileRequest) -> None:
    if cycle.disconnected:
        raise ClientGone


async def _send_cached(sender: FileSender, loop: asyncio.AbstractEventLoop) -> None:
    """Send what the page cache holds. Raises as `send_cached`, and ClientGone once the connection is lost."""
    ended: asyncio.Future[None] = loop.create_future()

    def on_end(error: Exception | None) -> None:
        if ended.done():
            return
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)

    sender.run(on_end)
    await ended


async def _wait_for_room(loop: asyncio.AbstractEventLoop, connection: RequestConnection) -> None:
    """Wait until the socket takes more, or fails."""
    found = asyncio.Event()
    watch = _RoomWatch(loop, connection, found.set)
    try:
        await found.wait()
    finally:
        watch.close()


class _SharedSocket:
    """A duplicate socket and the file being sent on it. Both stay open while a thread uses them.

    Never wait for that thread once the mount of the file does not answer.
    """

    def __init__(self, out: socket.socket, file: FileSlice) -> None:
        self.out = out
        self._file = file
        self._users = 1
        self._lock = Lock()

    def use(self) -> bool:
        """Count one more user; False when they are closed."""
        with self._lock:
            if not self._users:
                return False
            self._users += 1
            self._file.hold()
            return True

    def leave(self) -> None:
        """Count one user less."""
        self._file.let_go()
        self.close()

    def close(self) -> None:
        """Close the socket when nothing else uses it."""
        with self._lock:
            self._users -= 1
            unused = not self._users
        if unused:
            self.out.close()


async def _send_in_thread(cycle: FileRequest, head: bytes, file: FileSlice) -> tuple[int, bytes]:
    """Send the next piece in a thread. Returns and raises as `_send_some`, and raises ClientGone."""
    connection = cycle.connection
    connection.out = connection.transport.get_extra_info("socket").dup()
    shared = _SharedSocket(connection.out, file)
    connection.write_progress = cycle.state.now
    try:
        count = min(file.count, THREAD_BYTES)
        try:
            future = file.hop(_send_and_leave, shared, head, file.fd, file.offset, count)
        except RuntimeError as error:
            raise StoreFailed("the store is closed") from error
        sent = await _uninterrupted(future, shared.out)
    except DriverError:
        shutdown_socket(shared.out)
        raise
    finally:
        connection.out = None
        shared.close()
    if sent is None:
        raise ClientGone
    return sent


async def _uninterrupted(
    future: asyncio.Future[tuple[int, bytes] | None], out: socket.socket
) -> tuple[int, bytes] | None:
    """Return the result of a thread. When cancelled, end what it sends, and wait until it no longer does."""
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


def _send_and_leave(shared: _SharedSocket, head: bytes, file: int, offset: int, count: int) -> tuple[int, bytes] | None:
    """Return as `_send_some`; None when the client is gone, which must not count as an error of the store."""
    if not shared.use():
        return None
    try:
        return _send_some(shared.out.fileno(), head, file, offset, count)
    except (BrokenPipeError, ConnectionResetError):
        return None
    finally:
        shared.leave()


def _send_some(out: int, head: bytes, file: int, offset: int, count: int) -> tuple[int, bytes]:
    """Send what the socket takes of a head and of `count` bytes of a file.

    Return how many bytes of the file are taken, and what is left of the head and of the bytes copied behind it. A short
    count is not followed by a second call, whose refusal would cost more. Raises OSError, and BlobDamaged for a file
    that is too short.
    """
    taken = 0
    if head:
        start = head + os.pread(file, min(count, max(COPIED_BYTES - len(head), 0)), offset)
        taken = len(start) - len(head)
        try:
            sent = os.write(out, start)
        except BlockingIOError:
            sent = 0
        if sent < len(start):
            return taken, start[sent:]
    if taken == count:
        return taken, b""
    try:
        sent = os.sendfile(out, file, offset + taken, count - taken)
    except BlockingIOError:
        return taken, b""
    except OSError:
        if taken:
            return taken, b""  # these were sent; the next call fails
        raise
    if not sent:
        raise BlobDamaged(CUT_SHORT)
    return taken + sent, b""


def shutdown_socket(out: socket.socket) -> None:
    """Shut down the connection under a duplicate. A thread sending on it fails, and no more bytes go out."""
    try:
        out.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is no longer connected
