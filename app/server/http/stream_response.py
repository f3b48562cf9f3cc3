"""Sends responses whose body is slices of files. The one place that releases the slices."""

from __future__ import annotations

import logging
import os
from collections.abc import Coroutine
from functools import partial
from typing import Any, Protocol

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.server.http.interfaces import Message, RequestConnection, RunningRequest
from sluice_s3.app.server.http.response_head import NO_FIELDS, render_head
from sluice_s3.app.server.http.response_writer import ResponseWriter
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.app.server.http.zerocopy import CUT_SHORT, ClientGone, FileRequest, FileSender, send_file
from sluice_s3.app.store.driver_errors import to_domain_error
from sluice_s3.app.store.reading import BodyStream
from sluice_s3.storage_drivers.base import FileSlice
from sluice_s3.storage_drivers.errors import BlobDamaged, DriverError

logger = logging.getLogger("sluice.server")

CHUNK_BYTES = 256 * 1024
"""Bytes read at a time where the connection cannot send a file (TLS)."""


class StreamRequest(FileRequest, RunningRequest, Protocol):
    """A request that is answered with slices of files."""

    writer: ResponseWriter | None
    """Writes an answer that is not whole when it starts."""
    rest: Coroutine[Any, Any, Response] | None
    begun: BegunFile | None
    sent: int
    """Bytes of the answer's body that were sent."""

    async def send(self, message: Message) -> None:
        """Take a message of the answer, as ASGI's `send`."""
        ...

    def start(self) -> None:
        """Run the rest of the response in a task, or by `begun`."""
        ...

    def record(self, response: Response | None) -> None:
        """End as a running request, and count it."""
        ...


async def send_stream(cycle: StreamRequest, response: Response, body: BodyStream) -> None:
    """Send what is left of a response. Always releases the slices.

    Raises ClientGone, and StoreUnavailable or DataDamaged where a file cannot be read to its end.
    """
    zero_copy = _can_send_files(cycle.connection)
    try:
        if not cycle.started:
            start = {"type": "http.response.start", "status": response.status}
            await cycle.send({**start, "head": response.head, "length": response.length})
        async for piece in body:
            if isinstance(piece, bytes):
                await cycle.send({"type": "http.response.body", "body": piece, "more_body": True})
                cycle.sent += len(piece)
            else:
                await _send_slice(cycle, piece, zero_copy)
        await cycle.send({"type": "http.response.body", "body": b""})
    finally:
        await body.aclose()


def _can_send_files(connection: RequestConnection) -> bool:
    """Return whether bytes may go straight to the socket, past the transport: not under TLS."""
    return bool(connection.template["scheme"] == "http")


async def _send_slice(cycle: StreamRequest, piece: FileSlice, zero_copy: bool) -> None:
    try:
        if zero_copy:
            await _send_file(cycle, piece)
        else:
            await _send_copies(cycle, piece)
    except ClientGone:
        raise
    except OSError as error:
        raise StoreUnavailable() from error
    except DriverError as error:
        raise to_domain_error(error) from error
    finally:
        piece.release()


async def _send_file(cycle: StreamRequest, piece: FileSlice) -> None:
    count = piece.count
    assert cycle.writer is not None, "a response starts before its body"
    head = cycle.writer.take_head(count)
    try:
        await send_file(cycle, head, piece)
    finally:
        cycle.sent += count - piece.count


async def _send_copies(cycle: StreamRequest, piece: FileSlice) -> None:
    offset, end = piece.offset, piece.offset + piece.count
    while offset < end:
        data = await piece.hop(_read, piece, min(CHUNK_BYTES, end - offset), offset)
        if not data:
            raise BlobDamaged(CUT_SHORT)
        offset += len(data)
        await cycle.send({"type": "http.response.body", "body": data, "more_body": True})
        cycle.sent += len(data)


def _read(piece: FileSlice, count: int, offset: int) -> bytes:
    """Read in a thread, which may have been abandoned when it ends."""
    piece.hold()
    try:
        return os.pread(piece.fd, count, offset)
    finally:
        piece.let_go()


def warn_of_cut(request: S3Request, error: Exception) -> None:
    """Log that an answer ended in the middle, because its data cannot be read."""
    logger.warning("%s: an answer was cut off: %s", request.request_id, error.__cause__ or error)


async def answered(response: Response) -> Response:
    """Return a response that is there already, as a coroutine."""
    return response


class BegunFile:
    """A response with one cached file, of which the socket took a part at once.

    Callbacks of the event loop send the rest: no task and no coroutine waits for the socket.
    """

    def __init__(self, state: HttpState, connection: RequestConnection, response: Response, file: FileSlice) -> None:
        self._response = response
        self._file = file
        self._count = file.count
        head = render_head(response.status, state.default_head, response.head, NO_FIELDS)
        self._sender = FileSender(state, connection, head, file)
        self._error: Exception | None = None

    def begin(self) -> bool:
        """Send the head and what the socket takes of a cached file; return whether anything was sent."""
        try:
            return self._sender.send_cached()
        except (OSError, DriverError) as error:
            self._error = error  # perhaps after the head
            return True

    @property
    def left(self) -> bool:
        """Whether more has to be done."""
        return self._sender.left or self._error is not None

    def close(self) -> int:
        """Release the file; return how many bytes of it were sent."""
        self._file.release()
        return self._count - self._file.count

    def send_rest(self, cycle: StreamRequest) -> None:
        """Send the rest, complete the cycle, and record it; hand over to a coroutine if that must wait for the file."""
        cycle.started = True
        if self._error is None:
            self._sender.run(partial(self._end, cycle))
        else:
            self._end(cycle, self._error)

    def _end(self, cycle: StreamRequest, error: Exception | None) -> None:
        if error is None and self._sender.left:
            transport = cycle.connection.transport
            transport.write(self._sender.head)
            cycle.writer, cycle.sent = ResponseWriter(transport, self._file.count), self._count - self._file.count
            cycle.rest, cycle.begun = answered(self._response), None
            cycle.start()
            return
        cycle.sent = self.close()
        cycle.record(self._response)
        if error is None:
            cycle.response_complete = True
            cycle.connection.complete_cycle(cycle)
            return
        if not isinstance(error, ConnectionError):
            warn_of_cut(cycle.request, to_domain_error(error))
        if not cycle.disconnected:
            cycle.connection.abort()


def begin_to_send(
    state: HttpState, connection: RequestConnection, response: Response, body: BodyStream
) -> BegunFile | None:
    """Begin to send a response whose body is one file in the page cache; None: nothing is sent."""
    file = body.single
    if file is None or not file.nowait or not _can_send_files(connection):
        return None
    begun = BegunFile(state, connection, response, file)
    return begun if begun.begin() else None
