"""Bounds of request bodies on the admin listener.

It reads a body only with the token, up to a size, within a time, and as strict JSON. FastAPI itself would read it whole
before it checks the sender.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 1024 * 1024
"""Maximum bytes; the longest policies of IAM fit."""
TOO_LARGE = "the body is too large"
TOO_SLOW = "the body did not come in time"
CLOSE = {"connection": "close"}


class BodyLimits:
    """Middleware that bounds bodies.

    It refuses bodies without the token (401), over `MAX_BODY` (413), and those that take too long (408).
    """

    def __init__(self, app: ASGIApp, authorise: Callable[[Request], None], timeout: float) -> None:
        """`authorise` raises HTTPException for a request without the token."""
        self._app = app
        self._authorise = authorise
        self._timeout = timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application with a `receive` that counts bytes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check_head(Request(scope))
        except HTTPException as error:
            refusal = JSONResponse({"detail": error.detail}, error.status_code, {**(error.headers or {}), **CLOSE})
            await refusal(scope, receive, send)
            return
        had, deadline = 0, asyncio.get_running_loop().time() + self._timeout
        whole = False

        async def counted() -> Message:
            nonlocal had, whole
            if whole:  # from now on it waits for the end of the connection
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, TOO_SLOW, CLOSE) from None
            had += len(message.get("body", b""))
            if had > MAX_BODY:
                raise HTTPException(413, TOO_LARGE, CLOSE)
            whole = not message.get("more_body", False)
            return message

        await self._app(scope, counted, send)

    def _check_head(self, request: Request) -> None:
        length = request.headers.get("content-length", "0")
        if length == "0" and "transfer-encoding" not in request.headers:
            return
        self._authorise(request)
        if not length.isdigit() or len(length) > len(str(MAX_BODY)) or int(length) > MAX_BODY:
            raise HTTPException(413, TOO_LARGE)


class _Strict(Request):
    async def json(self) -> Any:
        """Return the body as strict JSON."""
        return orjson.loads(await self.body())


class StrictRoute(APIRoute):
    """A route that refuses NaN, infinity and unpaired surrogates, which Python's own JSON accepts.

    Neither the index nor an answer that repeats them could contain them.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler for requests with strict JSON."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(_Strict(request.scope, request.receive))

        return handle
