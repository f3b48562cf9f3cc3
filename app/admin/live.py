"""Streams of server-sent events: bounded in number, kept open by heartbeats, and ended with their session.

Source: HTML Standard, "Server-sent events". An event's data is one line, so that nothing in it can begin another field.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

from fastapi import HTTPException, Request, Response
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from sluice_s3.app.admin.sessions.guard import CALLER, Caller, Guard
from sluice_s3.app.errors import DomainError

EXTENSION = "sluice.live"
"""The message that takes a stream out of the running requests: `LIVE` in app/server/http/scope.py."""
MAX_STREAMS = 32
MAX_SESSION_STREAMS = 8
"""Streams of one session: a browser opens one or two for each of its tabs."""
HEARTBEAT_SECONDS = 15.0
"""Seconds after which a stream without events says that it is there. A reader that left is noticed by then."""
HEARTBEAT = b": \n\n"
HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",  # nginx would collect events
}


def render_event(data: bytes, name: str = "", number: int | None = None) -> bytes:
    """Return an event of one line of data.

    `name` is its type; a browser that comes back sends `number` as `Last-Event-ID`.
    """
    assert data.splitlines() == [data]
    head = (f"event: {name}\n" if name else "") + (f"id: {number}\n" if number is not None else "")
    return b"%bdata: %b\n\n" % (head.encode(), data)


class LiveStreams:
    """The streams that are open in this process."""

    def __init__(self, heartbeat: float = HEARTBEAT_SECONDS) -> None:
        self.heartbeat = heartbeat
        self._open: Counter[str] = Counter()

    def take(self, session: str) -> bool:
        """Count a stream of a session; return False, and count nothing, when there are too many."""
        if self._open.total() >= MAX_STREAMS or self._open[session] >= MAX_SESSION_STREAMS:
            return False
        self._open[session] += 1
        return True

    def release(self, session: str) -> None:
        """End a stream of a session."""
        self._open[session] -= 1
        self._open += Counter()  # sessions without streams are forgotten

    def __len__(self) -> int:
        return self._open.total()


class LiveResponse(Response):
    """A stream of events, until they or the session end, or the reader leaves; 429 past the limits.

    `events` yields what `render_event` returns. `is_allowed` is asked at each heartbeat.
    """

    def __init__(
        self,
        streams: LiveStreams,
        session: str,
        events: AsyncIterator[bytes],
        is_allowed: Callable[[], Awaitable[bool]],
    ) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._streams = streams
        self._session = session
        self._events = events
        self._is_allowed = is_allowed

    @classmethod
    def for_caller(cls, request: Request, caller: Caller, guard: Guard, events: AsyncIterator[bytes]) -> LiveResponse:
        """Return the answer to a route; the stream ends when its guard would not let the caller in any more."""
        session = caller.session.temporary.access_key if caller.session is not None else caller.arn

        async def is_allowed() -> bool:
            scope = {name: value for name, value in request.scope.items() if name != CALLER}
            try:
                await guard(Request(scope))
            except (HTTPException, DomainError):
                return False
            return True

        return cls(request.app.state.live, session, events, is_allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if not self._streams.take(self._session):
            detail = "Too many live views are open. Close a tab of the console, and try again."
            await JSONResponse({"detail": detail}, 429)(scope, receive, send)
            return
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if EXTENSION in scope.get("extensions", {}):
                await send({"type": EXTENSION})
            await self._send_events(send)
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._streams.release(self._session)

    async def _send_events(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        next_event: asyncio.Task[bytes | None] = asyncio.create_task(_take(self._events))
        heartbeat_at = loop.time() + self._streams.heartbeat
        try:
            while True:
                await asyncio.wait({next_event}, timeout=max(heartbeat_at - loop.time(), 0))
                if loop.time() >= heartbeat_at:
                    if not await self._is_allowed():
                        return
                    heartbeat_at = loop.time() + self._streams.heartbeat
                    await send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})
                if next_event.done():
                    event = next_event.result()
                    if event is None:
                        return
                    await send({"type": "http.response.body", "body": event, "more_body": True})
                    next_event = asyncio.create_task(_take(self._events))
        finally:
            next_event.cancel()
            await asyncio.gather(next_event, return_exceptions=True)


async def _take(events: AsyncIterator[bytes]) -> bytes | None:
    """Return the next event, None after the last one."""
    return await anext(events, None)
