"""The fast lane: requests that the application can answer at once are answered inside the parser's callback.

No scope, no task, no messages (DESIGN §6): all that costs as much as the whole of a HEAD.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.s3.request import S3Request
from app.s3.response import Response
from app.server.answer import JOINED, render_head
from app.server.head import Framing

if TYPE_CHECKING:
    from app.server.protocol import Connection

Lane = Callable[[S3Request], Response | None]
"""Of an application: gets a request without a body, gives its answer complete, or None when it would have to wait; the
ordinary way then gets the same request."""
Begin = Callable[[S3Request, bytes, Callable[[Response], None]], bool]
"""The same for what changes something, and for what a `Lane` left `coming`: the request, its whole body, and who is to
be given the answer; False when it must be awaited."""

SMALL = 160 * 1024
"""Bytes of a body up to which a change may go by the lane: a small object's, with the framing of signed chunks."""


def answer_now(connection: Connection, request: S3Request) -> bool:
    """Answer without a cycle, if the application can do so at once and nobody is to be waited for.

    No entry in `state.running` is needed, for the oldest request and for the greatest age: the application opens and
    reads what it answers with inside this call, and what tells others of this worker's requests runs in the same
    loop, so never within it.

    Only the first request of what one read gave (`lane_open`), lest a client that sends thousands at once keep the
    loop; and none that shall be the last of its connection.
    """
    lane, state = connection.lane, connection.state
    if lane is None or connection.active is not None or connection.write_paused or state.draining:
        return False
    answer = lane(request)
    if answer is None:
        return False
    connection.lane_open = connection.heading = False
    connection.parsed = None
    connection.since = connection.progress = state.now
    head, body = render_head(answer.status, state.default_head, answer.head, []), answer.body
    assert isinstance(body, bytes)
    if len(body) <= JOINED:
        connection.transport.write(head + body)
    else:
        connection.transport.writelines((head, body))
    return True


def is_small_change(method: bytes, framing: Framing) -> bool:
    """Whether a request may change something small, and its client does not wait to be told to continue."""
    return (
        (method == b"PUT" or method == b"DELETE")
        and framing.length is not None
        and framing.length <= SMALL
        and not framing.expects_continue
    )


def begin_held(connection: Connection) -> None:
    """Begin what was held until the bytes at hand were parsed: by the lane if they hold all of it."""
    held, connection.held = connection.held, None
    assert held is not None
    if not (held.complete and connection.begin is not None and held.begin(connection.begin)):
        held.start(connection.application)
