"""One request and its answer, as the application sees them: ASGI's receive and send."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from app.errors import StoreUnavailable
from app.s3.gateway import REQUEST
from app.s3.request import S3Request
from app.s3.response import Response
from app.server.answer import JOINED, render_head
from app.server.lane import Begin
from app.server.zerocopy import ClientGone, send_file

if TYPE_CHECKING:
    from app.server.protocol import Connection

logger = logging.getLogger("sluice.server")

Message = dict[str, Any]
Application = Callable[
    [dict[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

HIGH_WATER = 1024 * 1024
"""Bytes of a body that a connection reads ahead of the application."""
LOW_WATER = 256 * 1024
SMALL = 1024
"""Bytes under which a piece of a body is put together with the one before."""
DRAINED = 64 * 1024
"""An unread body up to this long is read and dropped after an early answer; a longer one ends the connection."""
FRAMING = frozenset((b"content-length", b"connection", b"transfer-encoding"))
ZERO_COPY = "http.response.zerocopysend"


class Cycle:
    """A request whose head is whole, and the answer to it."""

    # the state at the start of every cycle; what changes is set on the instance
    chunks: deque[bytes | bytearray] | None = None
    """What came of the body and was not given to the application yet."""
    buffered = 0
    """Bytes in `chunks`."""
    received = 0
    complete = False
    """The request body has arrived whole."""
    ended = False
    """The application was given the last of it."""
    disconnected = False
    waiter: asyncio.Future[None] | None = None
    task: asyncio.Task[None] | None = None
    head: bytes | None = None
    """The answer's head, written together with the first of its body."""
    started = False
    response_complete = False
    bodiless = False
    chunked = False
    left = 0
    """Bytes of the answer's body that are still to come; -1 when only its end will tell."""

    def __init__(
        self,
        connection: Connection,
        request: S3Request,
        version: str,
        length: int | None,
        expects_continue: bool,
        keep_alive: bool,
    ) -> None:
        self.connection = connection
        self.state = connection.state
        self.request = request
        self.version = version
        self.length = length
        """Bytes of the request body, None when it is chunked."""
        self.expects_continue = expects_continue
        self.keep_alive = keep_alive

    # life
    def start(self, application: Application) -> None:
        """Run the application."""
        self.state.running[self] = self.state.boot_ms
        self.task = self.state.loop.create_task(self._run(application))

    def begin(self, lane: Begin) -> bool:
        """Have the lane run it, when its body is here whole; False when it must be awaited.

        It counts as running until its answer: what it changes is for it as if it were a task.
        """
        chunks = self.chunks
        body = b"".join(chunks) if chunks else b""
        self.state.running[self] = self.state.boot_ms
        try:
            begun = lane(self.request, body, self._answer)
        except Exception:
            logger.exception("exception in the application")
            self.state.running.pop(self, None)
            self._failed()
            return True
        if not begun:
            self.state.running.pop(self, None)
        return begun

    def _answer(self, response: Response) -> None:
        """Send the whole answer of the lane."""
        self.state.running.pop(self, None)
        self._drop_buffered()
        if self.disconnected:
            return
        body = response.body
        assert isinstance(body, bytes)
        try:
            self._start(response.status, (), response.head, response.length)
            self._body(body, False)
        except (RuntimeError, ValueError):
            logger.exception("exception in an answer")
            self._failed()

    async def _run(self, application: Application) -> None:
        try:
            await application(self._scope(), self.receive, self.send)
        except ClientGone:
            pass
        except asyncio.CancelledError:
            self.connection.abort()
        except StoreUnavailable as error:  # in the middle of a body: before it, it has an answer
            logger.warning("%s: an answer was cut off: %s", self.request.request_id, error.__cause__ or error)
            self._failed()
        except Exception:
            logger.exception("exception in the application")
            self._failed()
        else:
            if not self.response_complete and not self.disconnected:
                logger.error("the application returned without completing its answer")
                self._failed()
        finally:
            self.state.running.pop(self, None)
            self._drop_buffered()

    def _scope(self) -> dict[str, Any]:
        request = self.request
        path = request.raw_path.decode("ascii")
        scope = self.connection.template.copy()
        scope["http_version"] = self.version
        scope["method"] = request.method
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = request.raw_path
        scope["query_string"] = request.raw_query
        scope["headers"] = request.header_list
        scope[REQUEST] = request
        return scope

    def _failed(self) -> None:
        if not self.disconnected and not self.response_complete:
            self.connection.application_failed(self)

    def cut(self) -> None:
        """End a request that is older than a request may get."""
        self.connection.abort()
        if self.task is not None:
            self.task.cancel()

    def abandon(self) -> None:
        """The connection cannot serve this request any more."""
        self.disconnected = True
        self._drop_buffered()
        self._wake()

    # the request body, from the parser
    def feed(self, data: bytes) -> None:
        """Take a piece of the body."""
        size = len(data)
        self.received += size
        if self.response_complete or self.disconnected:
            return
        if self.chunks is None:
            self.chunks = deque()
        if size < SMALL and self.chunks:
            # an object for each takes many times its bytes
            last = self.chunks[-1]
            if type(last) is bytearray and len(last) < LOW_WATER:
                last += data
            else:
                self.chunks.append(bytearray(data))
        else:
            self.chunks.append(data)
        self.buffered += size
        memory = self.state.memory
        memory.buffered += size
        if self.buffered > HIGH_WATER or memory.buffered > memory.tight_at:
            self.connection.pause_reading()
        if self.waiter is not None:
            self._wake()

    def finish(self) -> None:
        """The body is whole."""
        self.complete = True
        if self.waiter is not None:
            self._wake()

    @property
    def wants_body(self) -> bool:
        """The application waits for body that has not come."""
        return self.waiter is not None and not self.complete and not self.waiter.done()

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
        """The next piece of the body as it came from the socket, or `http.disconnect`."""
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
        connection = self.connection
        ahead = self.buffered < LOW_WATER and memory.buffered <= memory.tight_at
        if connection.read_paused and (ahead or not chunks):
            connection.resume_reading()
        self.ended = self.complete and not chunks
        return {"type": "http.request", "body": body, "more_body": not self.ended}

    def _send_continue(self) -> None:
        self.expects_continue = False
        if not (self.started or self.received or self.complete or self.disconnected):
            self.connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def send(self, message: Message) -> None:
        """Take a message of the answer. Waits while the reader is behind; raises ClientGone once nobody reads."""
        if self.connection.write_paused:
            await self.connection.drained()
        if self.disconnected:
            raise ClientGone
        kind = message["type"]
        if kind == "http.response.start":
            self._start(message["status"], message.get("headers", ()), message.get("head", b""), message.get("length"))
            if "body" in message:
                self._body(message["body"], False)
        elif not self.started or self.response_complete:
            raise RuntimeError(f"unexpected ASGI message {kind!r}")
        elif kind == "http.response.body":
            self._body(message.get("body", b""), message.get("more_body", False))
        elif kind == ZERO_COPY:
            await self._file(message)
        else:
            raise RuntimeError(f"unexpected ASGI message {kind!r}")

    def _start(self, status: int, headers: Any, rendered: bytes, length: int | None) -> None:
        if self.started:
            raise RuntimeError("the answer has started already")
        unread = 0 if self.complete else DRAINED + 1 if self.length is None else self.length - self.received
        if self.state.draining or unread > DRAINED or (unread and self.expects_continue):
            self.keep_alive = False
        fields = []
        for field in headers:
            name = field[0]
            if name in FRAMING:
                if name == b"content-length":
                    length = int(field[1])
                else:
                    if name == b"connection" and b"close" in field[1].lower():
                        self.keep_alive = False
                    continue
            fields.append(field)
        self.bodiless = status in (204, 304) or self.request.method == "HEAD"
        if length is not None:
            self.left = 0 if self.bodiless else length
        elif not self.bodiless:
            if self.version == "1.1":
                self.chunked = True
                fields.append((b"transfer-encoding", b"chunked"))
            else:
                self.keep_alive = False
                self.left = -1
        if not self.keep_alive:
            fields.append((b"connection", b"close"))
        self.head = render_head(status, self.state.default_head, rendered, fields)
        self.started = True

    def _body(self, body: bytes, more: bool) -> None:
        if self.bodiless:
            body = b""
        elif self.chunked:
            end = b"" if more else b"0\r\n\r\n"
            body = b"%x\r\n%b\r\n%b" % (len(body), body, end) if body else end
        elif self.left >= 0:
            self._count(len(body))
        transport = self.connection.transport
        head, self.head = self.head, None
        if head is None:
            if body:
                transport.write(body)
        elif len(body) <= JOINED:
            transport.write(head + body)
        else:
            transport.writelines((head, body))
        if not more:
            self._complete()

    async def _file(self, message: Message) -> None:
        count = message["count"]
        if not self.bodiless:
            if self.chunked or self.left < 0:
                raise RuntimeError("a file needs a content-length")
            self._count(count)
            if count:
                head, self.head = self.head, None
                place = message["file"], message["offset"], count
                await send_file(self, head or b"", *place, message.get("slice"))
        if not message.get("more_body", False):
            self._body(b"", False)

    def _count(self, size: int) -> None:
        if size > self.left:
            raise RuntimeError("the answer is longer than its content-length")
        self.left -= size

    def _complete(self) -> None:
        if self.left > 0:
            raise RuntimeError("the answer is shorter than its content-length")
        self.response_complete = True
        self._drop_buffered()
        self._wake()
        self.connection.answered(self)
