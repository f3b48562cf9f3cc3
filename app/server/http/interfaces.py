"""What the modules of a connection need of each other, and of the application. Classes satisfy these by their shape."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from sluice_s3.app.s3.errors import S3Error
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response

Message = dict[str, Any]
Application = Callable[
    [dict[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


class Responder(Protocol):
    """Answers S3 requests without ASGI's scope and messages, which cost a fifth of a HEAD."""

    def respond(self, request: S3Request) -> Coroutine[Any, Any, Response]:
        """Return the response to a request."""
        ...

    def record(self, request: S3Request, response: Response | None, sent: int) -> None:
        """Count a request after its response, of whose body `sent` bytes were sent. None: it was cut before."""
        ...


class Served(Protocol):
    """What a process serves: S3 by responders, or an ASGI application."""

    @property
    def application(self) -> Application | None:
        """Answers the requests of its listener, where `gateway` is None."""
        ...

    @property
    def gateway(self) -> Responder | None:
        """Answers the requests of its first listener."""
        ...

    @property
    def websites(self) -> Responder | None:
        """Answers those of its second listener."""
        ...

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Run what its answers need."""
        ...


class RunningRequest(Protocol):
    """A request with a complete head, as its connection and the limits of its worker see it."""

    request: S3Request
    task: asyncio.Task[None] | None
    keep_alive: bool
    complete: bool
    """The request body has arrived whole."""
    waited: float
    """Seconds that the application waited for the body, as of the last sweep."""
    started: bool
    response_complete: bool
    refused: tuple[S3Error, int] | None
    """What the server answered instead of the application, and the bytes of that body."""

    @property
    def head_sent(self) -> bool:
        """The head of the answer was written: no other answer is possible."""
        ...

    @property
    def wants_body(self) -> bool:
        """The application waits for body that has not arrived."""
        ...

    def is_slow(self, grace: float, rate: int) -> bool:
        """Return whether the body is slower than `rate` bytes a second after `grace` seconds."""
        ...

    def is_late(self) -> bool:
        """Return whether the body takes too long."""
        ...

    def refuse(self, error: S3Error) -> None:
        """Answer without the application, and close the connection."""
        ...

    def cut(self) -> None:
        """End a request that exceeds the greatest age."""
        ...


class OpenConnection(Protocol):
    """A connection, as the sweeps and the end of its worker see it."""

    transport: asyncio.Transport
    in_head: bool
    """Part of a head has arrived."""
    fresh: bool
    """Nothing has arrived yet."""
    input_closed: bool
    """No further requests are taken from it."""
    linger_until: float
    since: float
    """The time from which it is idle, or receives a head."""
    progress: float
    swept_at: float
    """The time of the last sweep."""

    @property
    def active(self) -> RunningRequest | None:
        """The request that is being answered."""
        ...

    @property
    def listener(self) -> int:
        """The number of the listener that accepted it, among those of its process."""
        ...

    def is_between_requests(self) -> bool:
        """Return whether nothing of a request or an answer is here, so that another process can go on with it."""
        ...

    def is_readable(self) -> bool:
        """Return whether bytes or an end have arrived that the loop has not seen."""
        ...

    def is_read_from(self) -> bool:
        """Return whether the peer has not yet acknowledged all that was written."""
        ...

    def is_reader_stuck(self, now: float, limit: float) -> bool:
        """Return whether the reader has taken none of the pending bytes for `limit` seconds."""
        ...

    def refuse(self, error: S3Error) -> None:
        """Answer without the application, and close the connection."""
        ...

    def end(self, linger: bool) -> None:
        """Close once everything is written."""
        ...

    def abort(self) -> None:
        """Close at once and drop unwritten bytes."""
        ...


class CallbackSender(Protocol):
    """Sends a file in callbacks of the event loop."""

    def end(self, error: Exception | None) -> None:
        """Stop, and report the end."""
        ...


class RequestConnection(Protocol):
    """The connection of a request, as that request and the file that answers it use it."""

    application: Application | None
    responder: Responder | None
    """Answers requests; without it, the application does."""
    transport: asyncio.Transport
    template: dict[str, Any]
    """The parts that every scope of the connection shares."""
    progress: float
    read_paused: bool
    write_paused: bool
    write_progress: float
    out: socket.socket | None
    """The duplicate socket on which a file waits for room, or a thread sends it."""
    sender: CallbackSender | None
    """Sends a file in callbacks."""

    def pause_reading(self) -> None:
        """Stop taking bytes from the socket."""
        ...

    def resume_reading(self) -> None:
        """Take bytes again."""
        ...

    async def wait_until_drained(self) -> None:
        """Wait until the transport's buffer is below its mark, or the connection is lost."""
        ...

    async def wait_until_flushed(self) -> None:
        """Wait until the transport's buffer is empty, or the connection is lost."""
        ...

    def complete_cycle(self, cycle: RunningRequest) -> None:
        """Go on after the complete answer of a request."""
        ...

    def application_failed(self, cycle: RunningRequest) -> None:
        """Handle an application that ended without a complete answer."""
        ...

    def refuse(self, error: S3Error) -> None:
        """Answer without the application, and close the connection."""
        ...

    def abort(self) -> None:
        """Close at once and drop unwritten bytes."""
        ...
