"""Bounds of request bodies on the admin listener.

It reads a body only of a known caller, up to a size, within a time, and as strict JSON. FastAPI itself would read it
whole before it checks the sender.
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

from sluice_s3.app.admin.sessions.guard import OPEN_ROUTES, authenticate

MAX_BODY = 1024 * 1024
"""Maximum bytes; the longest policies of IAM fit."""
MAX_SIGN_IN = 4096
"""Maximum bytes of what somebody sends who is not known yet."""
TOO_LARGE = "the body is too large"
TOO_SLOW = "the body did not come in time"
CLOSE = {"connection": "close"}


class BodyLimits:
    """Middleware that bounds bodies.

    It refuses bodies of unknown callers (401), over `MAX_BODY` (413), and those that take too long (408).
    """

    def __init__(self, app: ASGIApp, timeout: float) -> None:
        self._app = app
        self._timeout = timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application with a `receive` that counts bytes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        most = MAX_SIGN_IN if (request.method, scope["path"]) in OPEN_ROUTES else MAX_BODY
        try:
            await _check_head(request, most)
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
            if had > most:
                raise HTTPException(413, TOO_LARGE, CLOSE)
            whole = not message.get("more_body", False)
            return message

        await self._app(scope, counted, send)


async def _check_head(request: Request, most: int) -> None:
    length = request.headers.get("content-length", "0")
    if length == "0" and "transfer-encoding" not in request.headers:
        return
    if most == MAX_BODY:
        await authenticate(request)
    if not length.isdigit() or len(length) > len(str(most)) or int(length) > most:
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
