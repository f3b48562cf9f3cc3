"""The headers of every answer of the admin listener: an id, the session's cookie, and what browsers may do with it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sluice_s3.app.admin.sessions.endpoint import s3_endpoint
from sluice_s3.app.admin.sessions.guard import API, SET_COOKIE

logger = logging.getLogger("sluice.admin")

FAILED = "The gateway failed at this. Its log says why, under the id of this request."
REQUEST_ID = "sluice.request_id"
"""Key of the scope."""
DOCS = "/docs"
FIXED = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "origin-agent-cluster": "?1",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=(), clipboard-write=(self)",
}
SWAGGER = "https://cdn.jsdelivr.net"
"""Where the page of the API's description loads its scripts from, which only the holder of the admin token sees."""
POLICY_OF_DOCS = (
    f"default-src 'none'; script-src 'unsafe-inline' {SWAGGER}; style-src 'unsafe-inline' {SWAGGER}; "
    "img-src data: https://fastapi.tiangolo.com; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def console_policy(endpoint: str) -> str:
    """Return the Content-Security-Policy of the console: nothing inline, nothing foreign but S3 at `endpoint`."""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
        f"img-src 'self' blob: data: {endpoint}; media-src blob: {endpoint}; connect-src 'self' {endpoint}; "
        f"frame-src 'self' blob: {endpoint}; worker-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'none'; "
        "frame-ancestors 'none'"
    )


class AnswerHeaders:
    """Middleware that adds them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application with a `send` that adds headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope[REQUEST_ID] = secrets.token_hex(8).upper()

        started = False

        async def extended(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _headers(scope):
                    headers.setdefault(name, value)
                if SET_COOKIE in scope:
                    headers.append("set-cookie", scope[SET_COOKIE])
            await send(message)

        try:
            await self._app(scope, receive, extended)
        except Exception:
            if started:
                raise
            logger.exception("request %s failed", scope[REQUEST_ID])
            await JSONResponse({"detail": FAILED}, 500)(scope, receive, extended)


def _headers(scope: Scope) -> Iterable[tuple[str, str]]:
    path = scope["path"]
    yield "x-request-id", scope[REQUEST_ID]
    yield from FIXED.items()
    if path.startswith((f"{API}/", DOCS)):
        yield "cache-control", "no-store"
    if path == DOCS:
        yield "content-security-policy", POLICY_OF_DOCS
    else:
        state = scope["app"].state
        endpoint = s3_endpoint(Request(scope), state.settings, state.s3_listener)
        yield "content-security-policy", console_policy(endpoint)
