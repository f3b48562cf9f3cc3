"""Answers GETs and HEADs that never wait without a cycle, which costs a twentieth of a HEAD (`loadtests/cpu`)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from sluice_s3.app.eager_task import StartedCoroutine
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.server.http.interfaces import Responder
from sluice_s3.app.server.http.response_head import write_response
from sluice_s3.app.server.http.state import HttpState


class AnsweringConnection(Protocol):
    """A connection that may answer in the parser's callback."""

    state: HttpState
    transport: asyncio.Transport


def answer_at_once(
    connection: AnsweringConnection, responder: Responder, request: S3Request
) -> Coroutine[Any, Any, Response] | None:
    """Answer a request without a body, if its response never waits; else return the rest of its coroutine.

    It needs no entry in `state.running` (the oldest request, the greatest age): it reads all that it answers with in
    this call, and the sweep that publishes the worker's requests runs in the same loop.
    """
    request.whole_body = b""
    coroutine = responder.respond(request)
    try:
        waits_for = coroutine.send(None)
    except StopIteration as end:
        response: Response = end.value
        if not isinstance(response.body, bytes):
            return _return(response)
        write_response(connection.transport, response, response.body, connection.state.default_head)
        responder.record(request, response, len(response.body))
        return None
    return StartedCoroutine(coroutine, waits_for)


async def _return(response: Response) -> Response:
    return response
