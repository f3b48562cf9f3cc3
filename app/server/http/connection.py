"""HTTP/1.1 on one connection: uvicorn's `http` protocol class, written for this gateway.

It replaces uvicorn's HttpToolsProtocol, which has no limits of time or size, joins body chunks, answers in plain text
and cannot send files. llhttp does the framing, with every leniency off; `app.server.http.request_head` checks the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any, cast

import httptools

from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.errors.from_domain import to_s3_error
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.server.http.at_once import answer_at_once
from sluice_s3.app.server.http.cycle import RequestCycle
from sluice_s3.app.server.http.error_response import render_error
from sluice_s3.app.server.http.flow_control import FlowControl
from sluice_s3.app.server.http.ignored_upgrade import body_parser
from sluice_s3.app.server.http.interfaces import Application, Responder, RunningRequest
from sluice_s3.app.server.http.limits import check_limits, is_mostly_framing
from sluice_s3.app.server.http.request_head import MAX_TARGET, Framing, set_head
from sluice_s3.app.server.http.scope import TRUSTED_PROXY, scope_template
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.app.server.http.trusted_proxies import TrustedProxies

logger = logging.getLogger("sluice.server")

BODILESS = ("GET", "HEAD")
DIRECT_BODY_BYTES = 256 * 1024
"""Bytes left of a body above which it bypasses the parser."""
REFUSED_CONNECTIONS = 256
"""Connections over the limit that get an answer; further ones are dropped."""


class Connection(FlowControl):
    """One connection: turns bytes into cycles and answers them one at a time, in order."""

    def __init__(
        self,
        state: HttpState,
        application: Application | None,
        responder: Responder | None = None,
        *,
        listener: int = 0,
        starts_eagerly: bool = False,
    ) -> None:
        super().__init__(state)
        self.listener = listener
        """The number of the listener that accepted it, among those of its process."""
        self.application = application
        self.responder = responder
        self._starts_eagerly = starts_eagerly
        self._answers_at_once = False
        """No request of this read was answered at once; a client that sends thousands must not keep the loop."""
        self._unstarted: RequestCycle | None = None
        """The active cycle, until the read with its head is parsed."""
        self.parser = httptools.HttpRequestParser(self)
        self.template: dict[str, Any] = {}
        self.client = ""
        self.proxies: TrustedProxies | None = None
        """Set when the peer is a proxy that may name its client."""
        # the request being parsed, the one being answered, and those between
        self.parsed: RequestCycle | None = None
        self.active: RequestCycle | None = None
        self.cut_off: RequestCycle | None = None
        """A cycle with a body at whose head the parser stopped."""
        self.pipeline: deque[RequestCycle] = deque()
        self.target = b""
        self.fields: list[bytes] = []
        """Names and values of the head, by turns."""
        self.in_head = False
        """Part of a head has arrived."""
        self.head_bytes = 0
        """Bytes of reads that held nothing but head."""
        self.suspect = False
        """The head may exceed its limit."""
        self.direct = 0
        """Bytes of the body that will still bypass the parser."""
        self.chunked_bytes = 0
        """Bytes of a chunked body received, framing included."""
        self.error: errors.S3Error | None = None
        """Why the parser was stopped; answered after the requests before it."""
        self.fresh = True
        self.idle_before = 0
        """Seconds for which it waited for a request in another process."""
        self.since = self.progress = state.now

    # asyncio.Protocol
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the connection, or refuse it above the limit."""
        state = self.state
        self.transport = cast(asyncio.Transport, transport)
        state.connections.add(self)
        self.template = scope_template(transport)
        self.client = str((self.template["client"] or [""])[0])
        if state.proxies is not None and state.proxies.trusts(self.client):
            self.proxies = state.proxies
            self.template[TRUSTED_PROXY] = True
        self.progress = self.write_progress = state.now
        self.since = state.now - self.idle_before
        over = len(state.connections) - state.settings.max_connections
        self.error = errors.SlowDown() if over > 0 else None
        if over > REFUSED_CONNECTIONS:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake all waiters."""
        self.state.connections.discard(self)
        self.input_closed = True
        self._abandon()
        self.resume_writing()

    def eof_received(self) -> bool:
        """Keep the connection half open for a client that has sent its whole request.

        In any other state the client's end closes it.
        """
        active, plain = self.active, self.template["scheme"] == "http"
        if not plain or active is None or not active.complete or active.response_complete:
            return False
        if self.in_head or self.pipeline:
            return False
        active.keep_alive = False
        self.input_closed = True
        return True

    def data_received(self, data: bytes) -> None:
        """Take bytes from the socket."""
        if self.input_closed:
            self.discard(len(data))
            return
        if self.direct:
            data = self._feed_direct(data)
            if not data:
                return
        self.fresh = False
        self._answers_at_once = self._starts_eagerly
        was_in_head = self.in_head
        limit = self.state.max_header_bytes
        self.suspect = was_in_head or len(data) > limit
        if not was_in_head and self.active is None:
            self._begin_head()
            if self.error is not None:
                self.refuse(self.error)
                return
        self._parse_read(data, was_in_head, limit)
        if self._unstarted is not None:
            cycle, self._unstarted = self._unstarted, None
            cycle.start(eagerly=self._starts_eagerly)

    def _parse_read(self, data: bytes, was_in_head: bool, limit: int) -> None:
        """Parse bytes; `was_in_head`: part of a head had arrived before."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # upgrades are ignored: what follows is the body or the next request
            if self.cut_off is not None:
                self.parsed, self.cut_off = self.cut_off, None
                self.parser = body_parser(self, self.parsed.length)
            self._parse_read(data[upgrade.args[0] :], was_in_head, limit)
        except httptools.HttpParserInvalidURLError:
            self._malformed(errors.InvalidURI())
        except httptools.HttpParserError as error:
            if self.error is None and isinstance(error, httptools.HttpParserCallbackError):
                logger.error("a callback of the parser failed", exc_info=error)
                self.error = to_s3_error(cast(Exception, error.__context__ or error))
            self._malformed(self.error or errors.BadRequest())
        else:
            if self.in_head:
                self.head_bytes += len(data) if was_in_head else 0
                if self.head_bytes > limit or len(self.fields) > 2 * self.state.max_headers:
                    self._malformed(errors.RequestHeaderSectionTooLarge())
            elif self.direct:
                self._leave_parser()
            elif self.parsed is not None and self.parsed.length is None:
                self.chunked_bytes += len(data)
                if not self.parsed.complete and is_mostly_framing(self.chunked_bytes, self.parsed.received, limit):
                    self._malformed(errors.BadRequest("The framing of the body is larger than the body."))

    def _begin_head(self) -> None:
        self.in_head = True
        self.head_bytes = 0
        self.since = self.state.now

    # parser callbacks
    def on_message_begin(self) -> None:
        """Start a request."""
        if not self.in_head:
            self._begin_head()
        self.target = b""
        self.fields = []

    def on_url(self, url: bytes) -> None:
        """Take a fragment of the target."""
        self.target = self.target + url if self.target else url
        if len(self.target) > MAX_TARGET:
            self._stop(errors.InvalidURI())

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one field; fields after the body are trailers and are dropped."""
        if self.in_head:
            self.fields += name, value

    def on_headers_complete(self) -> None:
        """Check the whole head, and start the application or queue behind the running request."""
        state, parser = self.state, self.parser
        method, version = parser.get_method(), parser.get_http_version()
        request = S3Request()
        upgrade = parser.should_upgrade()
        try:
            framing = set_head(request, method, version, self.target, self.fields)
            check_limits(self, framing, state)
        except errors.S3Error as error:
            self._stop(error)
        request.scheme = self.template["scheme"]
        request.client = self.client
        if self.proxies is not None and (forwarded := request.headers.get("x-forwarded-for")):
            request.client = self.proxies.client(self.client, forwarded)
        keep_alive = version == "1.1" and parser.should_keep_alive()
        rest = begun = None
        if (
            self._answers_at_once
            and framing.length == 0
            and request.method in BODILESS
            and keep_alive
            and not (upgrade or state.draining or self.write_paused)
            and self.active is None
            and self.responder is not None
        ):
            self._answers_at_once = False
            rest, begun = answer_at_once(state, self, self.responder, request)
            if rest is None and begun is None:
                self.parsed, self.in_head = None, False
                self.since = self.progress = state.now
                return
        cycle = RequestCycle(self, state, request, version, framing, keep_alive)
        cycle.rest, cycle.begun = rest, begun
        self._add_cycle(cycle, framing, upgrade)

    def _add_cycle(self, cycle: RequestCycle, framing: Framing, upgrade: bool) -> None:
        """Make a request the active one, or queue it behind that."""
        self.parsed = cycle
        self.in_head = False
        self.progress = self.state.now
        if framing.length is None:
            self.chunked_bytes = 0
        elif framing.length > DIRECT_BODY_BYTES:
            self.direct = framing.length
        if self.active is None:
            self.active = self._unstarted = cycle
        else:
            self.pipeline.append(cycle)
            self.pause_reading()
        if upgrade and framing.length != 0:
            self.cut_off, self.parsed = cycle, None  # the end of this message is not the end of the body

    def on_body(self, body: bytes) -> None:
        """Take a fragment of the body."""
        cycle = self.parsed
        assert cycle is not None
        self.progress = self.state.now
        cycle.feed(body)

    def on_message_complete(self) -> None:
        """End the body."""
        cycle = self.parsed
        if cycle is None:  # it was answered at once, or a body is still to come
            return
        cycle.finish()
        self.direct = 0  # one read may hold all of a long body and more
        if not cycle.keep_alive:
            self.input_closed = True
        if cycle.response_complete and cycle is self.active:
            self._next()

    def _stop(self, error: errors.S3Error) -> None:
        self.error = error
        raise error

    # bodies that bypass the parser
    def _leave_parser(self) -> None:
        """Take the rest of a long body without a copy, then start a new parser."""
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
        return b"" if self.input_closed else rest

    def is_between_requests(self) -> bool:
        """Return whether nothing of a request or an answer is here, so that another process can go on with it."""
        idle = self.active is None and not (self.in_head or self.direct or self.pipeline or self.error)
        closing = self.input_closed or self.linger_until or self.transport.is_closing()
        return self.template["scheme"] == "http" and idle and not closing and not self.transport.get_write_buffer_size()

    # reading
    def resume_reading(self) -> None:
        """Take bytes again, unless a queued request must come first."""
        if self.read_paused and (self.linger_until or not (self.input_closed or self.pipeline)):
            self.progress = self.state.now
            super().resume_reading()

    # end
    def complete_cycle(self, cycle: RunningRequest) -> None:
        """Go on after the active cycle's complete answer."""
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
            self.active.start()
        elif self.error is not None:
            self.refuse(self.error)
            return
        if self.read_paused:
            self.resume_reading()

    def application_failed(self, cycle: RunningRequest) -> None:
        """Handle an application that ended without a complete answer."""
        if cycle is self.active and not cycle.head_sent:
            self.refuse(errors.InternalError())
        else:
            self.abort()

    def _malformed(self, error: errors.S3Error) -> None:
        """Refuse bytes that are no request, or one that is not supported."""
        parsed = self.parsed
        self.input_closed = True
        if parsed is not None and not parsed.keep_alive and parsed.complete:
            return  # bytes after a request with `connection: close`
        self.error = error
        if parsed is not None and not parsed.complete:
            # the framing of a body is broken
            if parsed is self.active:
                if parsed.head_sent:
                    self._abandon()
                    self.transport.abort()
                else:
                    self.refuse(error)
                return
            self.pipeline.remove(parsed)
        if self.active is None:
            self.refuse(error)

    def refuse(self, error: errors.S3Error) -> None:
        """Answer without the application, and close the connection."""
        state, active = self.state, self.active
        self._abandon()
        self.error = None
        if self.transport.is_closing():
            return
        resource = self.target.partition(b"?")[0].decode("latin-1") if len(self.target) <= MAX_TARGET else ""
        running = active if active in state.running and self.responder is not None else None
        known = "" if running is None else running.request.request_id
        request_id, answer, size = render_error(error, state.default_head, resource, known)
        self.transport.write(answer)
        if running is not None:
            running.refused = error, size  # its own end counts it
        else:
            state.record_refusal(request_id, error.code, error.status, size, self.client)
        self.end(linger=True)

    def _abandon(self) -> None:
        """Disconnect all cycles of this connection."""
        for cycle in (self.active, self.parsed, *self.pipeline):
            if cycle is not None and not cycle.disconnected:
                cycle.abandon()
        self.active = self.parsed = self._unstarted = None
        self.pipeline.clear()
        self.cut_file()

    def abort(self) -> None:
        """Close at once and drop unwritten bytes."""
        self.input_closed = True
        self._abandon()
        self.transport.abort()
