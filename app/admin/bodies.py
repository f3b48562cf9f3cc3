"""What the admin listener takes of a body: no more than a bound, for FastAPI reads it whole before it asks who sent it,
and JSON as strictly as the standard has it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 1024 * 1024
"""Bytes; the longest policies of IAM fit."""
TOO_LARGE = "the body is too large"


class Bounded:
    """Answers 413 for bodies over `MAX_BODY`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application, with a `receive` that counts."""
        headers = scope.get("headers", ())
        told = next((value for name, value in headers if name == b"content-length"), b"0")
        if not told.isdigit() or len(told) > len(str(MAX_BODY)) or int(told) > MAX_BODY:
            await JSONResponse({"detail": TOO_LARGE}, 413, {"connection": "close"})(scope, receive, send)
            return
        had = 0

        async def counted() -> Message:
            nonlocal had
            message = await receive()
            had += len(message.get("body", b""))
            if had > MAX_BODY:
                raise HTTPException(413, TOO_LARGE, {"connection": "close"})
            return message

        await self._app(scope, counted, send)


class _Strict(Request):
    async def json(self) -> Any:
        return orjson.loads(await self.body())


class StrictRoute(APIRoute):
    """A route that refuses NaN, infinity and halves of surrogate pairs, which Python's own JSON takes.

    Neither the index nor an answer that repeats them could hold them.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's, for requests that read strictly."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(_Strict(request.scope, request.receive))

        return handle
