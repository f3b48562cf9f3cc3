"""ASGI's lifespan: starts and stops the application, and keeps the reason of a failed start."""

from __future__ import annotations

import asyncio
from typing import Any

from sluice_s3.app.server.http.interfaces import Application, Message


class StartFailed(Exception):
    """The application could not start; the message is its reason."""


class Lifespan:
    """Replaces uvicorn's lifespan, which logs the reason and exits with a bare code."""

    should_exit = False

    def __init__(self, application: Application) -> None:
        self.state: dict[str, Any] = {}
        self._application = application
        self._to_application: asyncio.Queue[Message] = asyncio.Queue()
        self._from_application: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def startup(self) -> None:
        """Start the application. Raises StartFailed, or what the application raised."""
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        send = self._from_application.put
        self._task = asyncio.ensure_future(self._application(scope, self._to_application.get, send))
        await self._send_event("startup")

    async def shutdown(self) -> None:
        """Stop the application. Raises like `startup`."""
        await self._send_event("shutdown")
        if self._task is not None:
            await self._task

    async def _send_event(self, what: str) -> None:
        assert self._task is not None
        await self._to_application.put({"type": f"lifespan.{what}"})
        answer = asyncio.ensure_future(self._from_application.get())
        await asyncio.wait({answer, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done() and self._task.exception() is not None:
            answer.cancel()
            await self._task
        if not answer.done():
            answer.cancel()
            raise StartFailed(f"the application ended at its {what}")
        message = answer.result()
        if message["type"] != f"lifespan.{what}.complete":
            # Starlette raises the reason right after the message, which holds a whole traceback
            await asyncio.wait({self._task}, timeout=1)
            if self._task.done():
                await self._task
            raise StartFailed(message.get("message", "").strip().rpartition("\n")[2] or message["type"])
