"""Answers GETs and HEADs that never wait without a cycle, which costs a twentieth of a HEAD (`loadtests/cpu`).

A file that the page cache holds is sent at once, too, as far as the socket takes it. A cycle sends the rest.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from sluice_s3.app.eager_task import StartedCoroutine
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.server.http.interfaces import RequestConnection, Responder
from sluice_s3.app.server.http.response_head import write_response
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.app.server.http.stream_response import BegunFile, answered, begin_to_send

ANSWERED = (None, None)


def answer_at_once(
    state: HttpState, connection: RequestConnection, responder: Responder, request: S3Request
) -> tuple[Coroutine[Any, Any, Response] | None, BegunFile | None]:
    """Answer a request without a body, if its response never waits; else return the rest, as one or the other.

    It needs no entry in `state.running` (the oldest request, the greatest age): it reads all that it answers with in
    this call, and the sweep that publishes the worker's requests runs in the same loop.
    """
    request.whole_body = b""
    coroutine = responder.respond(request)
    try:
        waits_for = coroutine.send(None)
    except StopIteration as end:
        response: Response = end.value
        body = response.body
        if isinstance(body, bytes):
            write_response(connection.transport, response, body, state.default_head)
            responder.record(request, response, len(body))
            return ANSWERED
        begun = begin_to_send(state, connection, response, body)
        if begun is None:
            return answered(response), None
        if begun.left:
            return None, begun
        responder.record(request, response, begun.close())
        return ANSWERED
    return StartedCoroutine(coroutine, waits_for), None
