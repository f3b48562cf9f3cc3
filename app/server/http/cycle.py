"""One request and its answer, as the application sees them: ASGI's receive and send."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import Any

from sluice_s3.app.eager_task import enter_task, start_eagerly
from sluice_s3.app.errors import DataDamaged, StoreUnavailable
from sluice_s3.app.s3.errors import S3Error, SlowDown
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.server.http.interfaces import Message, RequestConnection
from sluice_s3.app.server.http.request_head import Framing
from sluice_s3.app.server.http.response_head import CONNECTION_CLOSE, NO_FIELDS, write_response
from sluice_s3.app.server.http.response_writer import ResponseWriter
from sluice_s3.app.server.http.scope import LIVE, build_scope
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.app.server.http.stream_response import BegunFile, send_stream, warn_of_cut
from sluice_s3.app.server.http.zerocopy import ClientGone

logger = logging.getLogger("sluice.server")

HIGH_WATER_BYTES = 1024 * 1024
"""Bytes of a body that a connection reads ahead of the application."""
LOW_WATER_BYTES = 256 * 1024
WHOLE_BODY_BYTES = 160 * 1024
"""Bytes of a body that the application gets in one piece, if it is complete before the application runs.

A small object fits, with the framing of signed chunks.
"""
JOINED_FRAGMENT_BYTES = 1024
"""Bytes below which a fragment of a body is joined to the one before."""
DRAINED = 64 * 1024
"""Bytes of an unread body that are dropped after an early answer. A longer body closes the connection."""


class RequestCycle:
    """A request with a complete head, and its answer."""

    # the initial state of every cycle; changes are set on the instance
    chunks: deque[bytes | bytearray] | None = None
    """Body received and not yet passed to the application."""
    buffered = 0
    """Bytes in `chunks`."""
    received = 0
    waited = 0.0
    """Seconds that the application waited for the body, as of the last sweep."""
    has_slot = False
    """It occupies one of the slots for unauthenticated bodies."""
    complete = False
    """The request body has arrived whole."""
    ended = False
    """The application has received the end of the body."""
    disconnected = False
    waiter: asyncio.Future[None] | None = None
    task: asyncio.Task[None] | None = None
    rest: Coroutine[Any, Any, Response] | None = None
    begun: BegunFile | None = None
    """The rest of its response, where the connection has begun it: see `answer_at_once`."""
    writer: ResponseWriter | None = None
    """Writes an answer that is not whole when it starts."""
    sent = 0
    """Bytes of the answer's body that were sent."""
    started = False
    response_complete = False
    refused: tuple[S3Error, int] | None = None
    """What the server answered instead of the application, and the bytes of that body."""

    def __init__(
        self,
        connection: RequestConnection,
        state: HttpState,
        request: S3Request,
        version: str,
        framing: Framing,
        keep_alive: bool,
    ) -> None:
        self.connection = connection
        self.state = state
        self.request = request
        self.version = version
        self.length = framing.length
        """Bytes of the request body, None when it is chunked."""
        self.expects_continue = framing.expects_continue
        self.keep_alive = keep_alive

    # life
    def start(self, *, eagerly: bool = False) -> None:
        """Run the application, eagerly or in the next turn of the event loop.

        It counts as running until its answer, so that a change that it starts sees it.
        """
        request = self.request
        self.state.running.setdefault(self, self.state.boot_ms)  # a begun file, continued by a task, is in it already
        if self.begun is not None:
            self.begun.send_rest(self)
            return
        request.receive = self.receive
        if self.complete and self.received <= WHOLE_BODY_BYTES:
            request.whole_body = b"".join(self.chunks) if self.chunks else b""
            if self.chunks is not None and len(self.chunks) > 1:
                self.chunks = deque((request.whole_body,))  # not the pieces too: memory counts them once
        if eagerly:
            self.task = start_eagerly(self.state.loop, self._run())
        else:
            self.task = self.state.loop.create_task(self._run())

    async def _run(self) -> None:
        request, responder = self.request, self.connection.responder
        response = None
        try:
            if responder is None:
                await self._call_application()
            else:
                response = await (self.rest or responder.respond(request))
                body = response.body
                if isinstance(body, bytes):
                    if self.connection.write_paused:
                        await self.connection.wait_until_drained()
                    self._write(response, body)
                else:
                    await send_stream(self, response, body)
        except ClientGone:
            pass
        except asyncio.CancelledError:
            self.connection.abort()
        except (StoreUnavailable, DataDamaged) as error:  # in a body: before it, there is an error response
            warn_of_cut(request, error)
            self._report_failure()
        except Exception:
            logger.exception("exception in the application")
            self._report_failure()
        else:
            if not self.response_complete and not self.disconnected:
                logger.error("the application returned without completing its answer")
                self._report_failure()
        finally:
            del request.receive  # a reference cycle, which would wait for the garbage collector
            request.whole_body = None  # the connection keeps its last request, and no longer counts these bytes
            if self.chunks is not None:
                self._drop_buffered()
            self._release_slot()
            self.record(response)

    def record(self, response: Response | None) -> None:
        """End as a running request, and count it once, with the answer that its client gets."""
        self.state.running.pop(self, None)
        responder, request = self.connection.responder, self.request
        if responder is None:
            return
        if self.refused is not None:
            error, self.sent = self.refused
            request.error_code, response = error.code, Response(error.status)
        request.received = self.received
        try:
            responder.record(request, response, self.sent)
        except Exception:
            logger.exception("a request could not be recorded")

    async def _call_application(self) -> None:
        await enter_task()  # FastAPI needs one
        application = self.connection.application
        assert application is not None, "a listener has a responder or an application"
        await application(build_scope(self.connection.template, self.request, self.version), self.receive, self.send)

    def _write(self, response: Response, body: bytes) -> None:
        """Write a complete response, whose head says how long its body is. Raises ClientGone."""
        if self.disconnected:
            raise ClientGone
        if not self.complete:
            self._close_unless_read()
        elif self.state.draining:
            self.keep_alive = False
        connection, fields = self.connection, NO_FIELDS if self.keep_alive else [CONNECTION_CLOSE]
        write_response(connection.transport, response, body, self.state.default_head, fields)
        self.started = self.response_complete = True
        self.sent = len(body)
        if self.waiter is not None:
            self._wake()
        connection.complete_cycle(self)

    def _close_unless_read(self) -> None:
        """Close the connection after the answer when too much of the request body is unread."""
        unread = 0 if self.complete else DRAINED + 1 if self.length is None else self.length - self.received
        if self.state.draining or unread > DRAINED or (unread and self.expects_continue):
            self.keep_alive = False

    def _report_failure(self) -> None:
        if not self.disconnected and not self.response_complete:
            self.connection.application_failed(self)

    def refuse(self, error: S3Error) -> None:
        """Answer without the application, and close the connection."""
        self.connection.refuse(error)

    def cut(self) -> None:
        """End a request that exceeds the greatest age."""
        self.connection.abort()
        if self.task is not None:
            self.state.loop.call_soon(self.task.cancel)  # one that has not begun would never end its request

    def abandon(self) -> None:
        """Disconnect this request."""
        self.disconnected = True
        self._drop_buffered()
        self._release_slot()
        self._wake()

    # the request body, from the parser
    def feed(self, data: bytes) -> None:
        """Take a fragment of the body."""
        size = len(data)
        self.received += size
        if self.response_complete or self.disconnected:
            return
        if self.chunks is None:
            self.chunks = deque()
        if size < JOINED_FRAGMENT_BYTES and self.chunks:
            # an object for each fragment would take many times its bytes
            last = self.chunks[-1]
            if type(last) is bytearray and len(last) < LOW_WATER_BYTES:
                last += data
            else:
                self.chunks.append(bytearray(data))
        else:
            self.chunks.append(data)
        self.buffered += size
        memory = self.state.memory
        memory.buffered += size
        if self.buffered > HIGH_WATER_BYTES or memory.buffered > memory.tight_at:
            self.connection.pause_reading()
        if self.waiter is not None:
            self._wake()

    def finish(self) -> None:
        """Mark the body as complete."""
        self.complete = True
        if self.has_slot:
            self._release_slot()
        if self.waiter is not None:
            self._wake()

    @property
    def head_sent(self) -> bool:
        """The head of the answer was written: no other answer is possible."""
        return self.started and (self.writer is None or self.writer.head is None)

    @property
    def wants_body(self) -> bool:
        """The application waits for body that has not arrived."""
        return self.waiter is not None and not self.complete and not self.waiter.done()

    def is_slow(self, grace: float, rate: int) -> bool:
        """Return whether the body is slower than `rate` bytes a second after `grace` seconds."""
        return self.received < rate * (self.waited - grace)

    def is_late(self) -> bool:
        """Return whether the body takes too long: by its average rate, or as a document."""
        settings = self.state.settings
        if self.request.is_document and self.waited > settings.document_timeout:
            return True
        return self.is_slow(settings.body_grace, settings.body_min_rate)

    def _update_slot(self) -> None:
        """Take a slot for an unauthenticated body, or release it once the caller is authenticated."""
        if self.has_slot:
            self._release_slot()
        elif self.state.unauthenticated.take(self, self.state.now):
            self.has_slot = True
        else:
            self.refuse(SlowDown())

    def _release_slot(self) -> None:
        if self.has_slot:
            self.has_slot = False
            self.state.unauthenticated.release(self)

    def _drop_buffered(self) -> None:
        if self.chunks is not None:
            self.state.memory.buffered -= self.buffered
            self.buffered = 0
            self.chunks = None

    def _wake(self) -> None:
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # ASGI
    async def receive(self) -> Message:
        """Return the next fragment of the body as it came from the socket, or `http.disconnect`."""
        over = self.disconnected or self.response_complete
        if not (over or self.complete) and self.has_slot is not (self.request.account_id is None):
            self._update_slot()
        if self.expects_continue:
            self._send_continue()
        while True:
            if self.disconnected or self.response_complete:
                return {"type": "http.disconnect"}
            if self.chunks:
                return self._take(self.chunks)
            if self.complete and not self.ended:
                self.ended = True
                return {"type": "http.request", "body": b"", "more_body": False}
            connection = self.connection
            connection.resume_reading()
            connection.progress = self.state.now
            if self.waiter is None or self.waiter.done():
                self.waiter = self.state.loop.create_future()
            await self.waiter

    def _take(self, chunks: deque[bytes | bytearray]) -> Message:
        body = chunks.popleft()
        size = len(body)
        self.buffered -= size
        memory = self.state.memory
        memory.buffered -= size
        ahead = self.buffered < LOW_WATER_BYTES and memory.buffered <= memory.tight_at
        if self.connection.read_paused and (ahead or not chunks):
            self.connection.resume_reading()
        self.ended = self.complete and not chunks
        return {"type": "http.request", "body": body, "more_body": not self.ended}

    def _send_continue(self) -> None:
        self.expects_continue = False
        if not (self.started or self.received or self.complete or self.disconnected):
            self.connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def send(self, message: Message) -> None:
        """Take a message of the answer; wait while the client reads too slowly.

        Raises ClientGone once the client is gone.
        """
        if self.connection.write_paused:
            await self.connection.wait_until_drained()
        if self.disconnected:
            raise ClientGone
        kind = message["type"]
        if kind == "http.response.start":
            self._start(message)
        elif self.writer is None or self.response_complete:
            raise RuntimeError(f"unexpected ASGI message {kind!r}")
        elif kind == "http.response.body":
            more = message.get("more_body", False)
            self.writer.write(message.get("body", b""), more)
            if not more:
                self._complete()
        elif kind == LIVE:
            self.state.leave_running(self)
        else:
            raise RuntimeError(f"unexpected ASGI message {kind!r}")

    def _start(self, message: Message) -> None:
        if self.started:
            raise RuntimeError("the answer has started already")
        self._close_unless_read()
        self.writer = ResponseWriter(self.connection.transport)
        self.keep_alive = self.writer.start(
            message, self.request.method, self.version, self.state.default_head, keep_alive=self.keep_alive
        )
        self.started = True

    def _complete(self) -> None:
        self.response_complete = True
        self._drop_buffered()
        if self.waiter is not None:
            self._wake()
        self.connection.complete_cycle(self)
