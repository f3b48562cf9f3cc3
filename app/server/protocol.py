"""HTTP/1.1 on one connection: uvicorn's `http` protocol class, written for this gateway.

It takes the place of uvicorn's HttpToolsProtocol, which has no limits of time or size, joins body chunks, answers in
plain text and cannot send files. Framing is llhttp's with every leniency off, and `app.server.head` on top.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any, cast

import httptools

from app.s3.errors import BadRequest, InternalError, InvalidURI, RequestHeaderSectionTooLarge, S3Error, SlowDown
from app.s3.request import S3Request
from app.server.cycle import Application, Cycle
from app.server.forwarded import Proxies
from app.server.head import MAX_TARGET, METHODS, check_head, check_target
from app.server.lane import Begin, Lane, answer_now, begin_held, is_small_change
from app.server.limits import check_limits
from app.server.refusal import refusal
from app.server.state import WorkerState, scope_template
from app.server.upgrades import parser_of_body
from app.server.wire import Wire
from app.server.zerocopy import shut

logger = logging.getLogger("sluice.server")

DIRECT = 256 * 1024
"""Bodies with more bytes than this to come do not pass through the parser."""
REFUSED_CONNECTIONS = 256
"""Connections over the limit that are told so; those over this are dropped."""
CHUNK_OVERHEAD = 8
"""Bytes of framing and data that one byte of a chunked body may cost: six are needed for chunks of one."""
READ = 256 * 1024
"""Bytes that one read from the socket gives at most."""


class Connection(Wire):
    """One connection: bytes to cycles, one answered at a time, in order."""

    def __init__(
        self, state: WorkerState, application: Application, lane: Lane | None = None, begin: Begin | None = None
    ) -> None:
        super().__init__(state)
        self.application = application
        self.lane = lane
        self.begin = begin
        self.held: Cycle | None = None
        """What the lane may take, if the bytes at hand hold all of it."""
        self.lane_open = False
        """No request of the bytes at hand was answered by the lane yet."""
        self.parser = httptools.HttpRequestParser(self)
        self.template: dict[str, Any] = {}
        self.client = ""
        self.proxies: Proxies | None = None
        """Set when the other side is a proxy that may say whose request it brings."""
        # the request that is being parsed, the one that is being answered, and those between
        self.parsed: Cycle | None = None
        self.active: Cycle | None = None
        self.cut_off: Cycle | None = None
        """One with a body at whose head the parser ended."""
        self.pipeline: deque[Cycle] = deque()
        self.target = b""
        self.names: list[bytes] = []
        self.values: list[bytes] = []
        self.heading = False
        """Bytes of a head have come, but not all of it."""
        self.head_fed = 0
        """Bytes of reads that were all head."""
        self.suspect = False
        """The head may be over its bound."""
        self.direct = 0
        """Bytes of the body that are still to come past the parser."""
        self.chunked_fed = 0
        """Bytes that came of a chunked body, framing and all."""
        self.error: S3Error | None = None
        """Why the parser was stopped; answered once what came before is."""
        self.fresh = True
        self.since = self.progress = state.now

    # asyncio.Protocol
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, or refuse past the limit of connections."""
        state = self.state
        self.transport = cast(asyncio.Transport, transport)
        state.connections.add(self)
        self.template = scope_template(transport)
        self.client = str((self.template["client"] or [""])[0])
        if state.proxies is not None and state.proxies.trusts(self.client):
            self.proxies = state.proxies
        self.since = self.progress = self.write_progress = state.now
        over = len(state.connections) - state.settings.max_connections
        self.error = SlowDown() if over > 0 else None
        if over > REFUSED_CONNECTIONS:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell everybody who waits."""
        self.state.connections.discard(self)
        self.deaf = True
        self._abandon()
        self.resume_writing()

    def eof_received(self) -> bool:
        """A client that has sent all of its request may still read; in any other state its end is the end."""
        active = self.active
        half_open = (
            active is not None
            and active.complete
            and not self.heading
            and not self.pipeline
            and not active.response_complete
            and self.template["scheme"] == "http"
        )
        if half_open and active is not None:
            active.keep_alive = False
            self.deaf = True
        return half_open

    def data_received(self, data: bytes) -> None:
        """Bytes from the socket."""
        if self.deaf:
            self.discard(len(data))
            return
        if self.direct:
            data = self._feed_direct(data)
            if not data:
                return
        self.fresh = False
        self.lane_open = self.lane is not None
        heading = self.heading
        limit = self.state.max_header_bytes
        self.suspect = heading or len(data) > limit
        if not heading and self.active is None:
            self._begin_head()
            if self.error is not None:
                self.refuse(self.error)
                return
        self._take(data, heading, limit)
        if self.held is not None:
            begin_held(self)

    def _take(self, data: bytes, heading: bool, limit: int) -> None:
        """Parse bytes; `heading`: a head was under way."""
        try:
            self._parse(data)
        except httptools.HttpParserInvalidURLError:
            self._malformed(InvalidURI())
        except httptools.HttpParserError as error:
            if self.error is None and isinstance(error, httptools.HttpParserCallbackError):
                logger.error("a callback of the parser failed", exc_info=error)
                self.error = InternalError()
            self._malformed(self.error or BadRequest())
        else:
            if self.heading and len(self.names) > self.state.max_headers:
                self._malformed(RequestHeaderSectionTooLarge())
            elif self.heading and heading:
                self.head_fed += len(data)
                if self.head_fed > limit:
                    self._malformed(RequestHeaderSectionTooLarge())
            elif self.direct:
                self._leave_parser()
            elif self.parsed is not None and self.parsed.length is None:
                self._check_overhead(self.parsed, len(data))

    def _begin_head(self) -> None:
        self.heading = True
        self.head_fed = 0
        self.since = self.state.now

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # an upgrade is not taken: what follows is the body, or the next request
            if self.cut_off is not None:
                self.parsed, self.cut_off = self.cut_off, None
                self.parser = parser_of_body(self, self.parsed.length)
            rest = data[upgrade.args[0] :]
            if rest:
                self._parse(rest)

    # parser callbacks
    def on_message_begin(self) -> None:
        """A request starts."""
        if not self.heading:
            self._begin_head()
        self.target = b""
        self.names = []
        self.values = []

    def on_url(self, url: bytes) -> None:
        """A piece of the target."""
        self.target = self.target + url if self.target else url
        if len(self.target) > MAX_TARGET:
            self._stop(InvalidURI())

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field; after the body it is a trailer, and those are dropped."""
        if self.heading:
            self.names.append(name)
            self.values.append(value.rstrip())

    def on_headers_complete(self) -> None:
        """The head is whole: check it, and start the application or queue behind the running request."""
        state, parser = self.state, self.parser
        method, version = parser.get_method(), parser.get_http_version()
        request = S3Request()
        request.take_fields(self.names, self.values)
        upgrade = parser.should_upgrade()
        try:
            path, query = check_target(self.target)
            framing = check_head(method, version, request)
            check_limits(self, framing)
        except S3Error as error:
            self._stop(error)
        request.method = METHODS[method]
        request.raw_path = path
        request.raw_query = query
        request.scheme = self.template["scheme"]
        request.client = self.client
        if self.proxies is not None and (forwarded := request.headers.get("x-forwarded-for")):
            request.client = self.proxies.client(self.client, forwarded)
        keep_alive = version == "1.1" and parser.should_keep_alive()
        if (
            self.lane_open
            and framing.length == 0
            and (method == b"GET" or method == b"HEAD")
            and keep_alive
            and not upgrade
            and answer_now(self, request)
        ):
            return
        cycle = self.parsed = Cycle(self, request, version, framing.length, framing.expects_continue, keep_alive)
        self.heading = False
        self.progress = state.now
        if framing.length is None:
            self.chunked_fed = 0
        elif framing.length > DIRECT:
            self.direct = framing.length
        if self.active is None:
            self.active = cycle
            small = request.coming is not None or is_small_change(method, framing)
            if small and keep_alive and not upgrade and self.begin is not None:
                self.held = cycle
            else:
                cycle.start(self.application)
        else:
            self.pipeline.append(cycle)
            self.pause_reading()
        if upgrade and framing.length != 0:
            self.cut_off, self.parsed = cycle, None  # so that the end of the message is not taken for the body's

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        cycle = self.parsed
        assert cycle is not None
        self.progress = self.state.now
        cycle.feed(body)

    def on_message_complete(self) -> None:
        """The body is whole."""
        cycle = self.parsed
        if cycle is None:  # the lane has answered, or there is a body yet
            return
        cycle.finish()
        self.direct = 0  # one read may hold a long body whole, and more
        if not cycle.keep_alive:
            self.deaf = True
        if cycle.response_complete and cycle is self.active:
            self._next()

    def _stop(self, error: S3Error) -> None:
        self.error = error
        raise error

    # bodies past the parser
    def _leave_parser(self) -> None:
        """The parser is in the middle of a long body: take the rest of it without a copy, then start a new parser."""
        assert self.parsed is not None
        self.direct -= self.parsed.received
        self.parser = httptools.HttpRequestParser(self)

    def _feed_direct(self, data: bytes) -> bytes:
        cycle = self.parsed
        assert cycle is not None
        self.progress, rest = self.state.now, b""
        if len(data) > self.direct:
            data, rest = data[: self.direct], data[self.direct :]
        self.direct -= len(data)
        cycle.feed(data)
        if not self.direct:
            self.on_message_complete()
        return b"" if self.deaf else rest

    def _check_overhead(self, cycle: Cycle, size: int) -> None:
        """Chunk extensions and trailers are bounded like a head, and by the body that they come with."""
        self.chunked_fed += size
        if not cycle.complete:
            bound = self.state.max_header_bytes + CHUNK_OVERHEAD * cycle.received
            if self.chunked_fed > bound + READ:
                self._malformed(BadRequest("The framing of the body is larger than the body."))

    # reading
    def resume_reading(self) -> None:
        """Take bytes again, unless they belong to a request whose turn has not come."""
        if self.read_paused and (self.linger_until or not (self.deaf or self.pipeline)):
            self.progress = self.state.now
            super().resume_reading()

    # ends
    def answered(self, cycle: Cycle) -> None:
        """The active cycle's answer is complete."""
        if cycle is not self.active:
            return
        if not cycle.keep_alive:
            self.active = None
            self.end(linger=self.read_paused or not cycle.complete)
        elif cycle.complete:
            self._next()
        else:
            self.resume_reading()

    def _next(self) -> None:
        self.active = None
        self.since = self.progress = self.state.now
        if self.pipeline:
            self.active = self.pipeline.popleft()
            self.active.start(self.application)
        elif self.error is not None:
            self.refuse(self.error)
            return
        self.resume_reading()

    def application_failed(self, cycle: Cycle) -> None:
        """The application ended without a whole answer."""
        if cycle is self.active and (not cycle.started or cycle.head is not None):
            self.refuse(InternalError())
        else:
            self.abort()

    def _malformed(self, error: S3Error) -> None:
        """What the parser got is no request, or not one we take."""
        parsed = self.parsed
        self.deaf = True
        if parsed is not None and not parsed.keep_alive and parsed.complete:
            return  # bytes after a request that asked for the end
        self.error = error
        if parsed is not None and not parsed.complete:
            # the framing of a body is broken
            if parsed is self.active:
                started = parsed.started and parsed.head is None
                self._abandon()
                if started:
                    self.transport.abort()
                else:
                    self.refuse(error)
                return
            self.pipeline.remove(parsed)
        if self.active is None:
            self.refuse(error)

    def refuse(self, error: S3Error) -> None:
        """Answer without the application, and end the connection."""
        self._abandon()
        self.error = None
        if self.transport.is_closing():
            return
        resource = self.target.partition(b"?")[0].decode("latin-1") if len(self.target) <= MAX_TARGET else ""
        request_id, answer = refusal(error, self.state.default_head, resource)
        self.transport.write(answer)
        self.state.refused(request_id, error.code, error.status, len(answer), self.client)
        self.end(linger=True)

    def _abandon(self) -> None:
        """No cycle of this connection can send or receive any more."""
        for cycle in (self.active, self.parsed, *self.pipeline):
            if cycle is not None and not cycle.disconnected:
                cycle.abandon()
        self.active = self.parsed = self.held = None
        self.pipeline.clear()
        if self.out is not None:
            shut(self.out)
        if self.out_waiter is not None and not self.out_waiter.done():
            self.out_waiter.set_result(None)

    def abort(self) -> None:
        """End at once, without what is still unwritten."""
        self.deaf = True
        self._abandon()
        self.transport.abort()
