"""The fast path: answers a request inside the parser's callback when nothing must wait.

It creates no scope, no task and no messages, which cost as much as a whole HEAD.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.server.http.cycle import RequestCycle
from sluice_s3.app.server.http.interfaces import Application, TryHandle, TryStart
from sluice_s3.app.server.http.request_head import Framing
from sluice_s3.app.server.http.response_head import JOINED, render_head
from sluice_s3.app.server.http.state import HttpState

MAX_BODY_BYTES = 160 * 1024
"""Bytes of a body that may take the fast path. A small object fits, with the framing of signed chunks."""


class AnsweringConnection(Protocol):
    """A connection that may answer in the parser's callback."""

    state: HttpState
    transport: asyncio.Transport
    try_handle: TryHandle | None
    fast_path_open: bool
    """The fast path has not answered a request of these bytes yet."""
    in_head: bool
    """Part of a head has arrived."""
    parsed: RequestCycle | None
    active: RequestCycle | None
    write_paused: bool
    since: float
    progress: float


def try_respond(connection: AnsweringConnection, request: S3Request) -> bool:
    """Answer without a cycle, if that needs no wait and no request is before it.

    It needs no entry in `state.running` (the oldest request, the greatest age): the application opens and reads what it
    answers with inside this call. The sweep that publishes the worker's requests runs in the same loop, so never during
    it.

    Only the first request of each read takes this path (`fast_path_open`), so that a client that sends thousands at
    once does not keep the loop; and never the last request of a connection.
    """
    try_handle, state = connection.try_handle, connection.state
    if try_handle is None or connection.active is not None or connection.write_paused or state.draining:
        return False
    response = try_handle(request)
    if response is None:
        return False
    connection.fast_path_open = connection.in_head = False
    connection.parsed = None
    connection.since = connection.progress = state.now
    head, body = render_head(response.status, state.default_head, response.head, []), response.body
    assert isinstance(body, bytes)
    if len(body) <= JOINED:
        connection.transport.write(head + body)
    else:
        connection.transport.writelines((head, body))
    return True


def may_take_fast_path(method: bytes, framing: Framing) -> bool:
    """Return whether a request may be a small change that needs no 100-continue."""
    return (
        (method == b"PUT" or method == b"DELETE")
        and framing.length is not None
        and framing.length <= MAX_BODY_BYTES
        and not framing.expects_continue
    )


def start_deferred(cycle: RequestCycle, try_start: TryStart | None, application: Application) -> None:
    """Start a held cycle. It takes the fast path if its body is complete."""
    if not (cycle.complete and try_start is not None and cycle.try_fast_path(try_start)):
        cycle.start(application)
