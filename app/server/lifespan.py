"""ASGI's lifespan: the application's own start and stop, with its reason when it cannot start."""

from __future__ import annotations

import asyncio
from typing import Any

from app.server.cycle import Application, Message


class StartFailed(Exception):
    """The application could not start; the message is its last word on why."""


class Lifespan:
    """Takes the place of uvicorn's, which logs the reason and exits with a bare code."""

    should_exit = False

    def __init__(self, application: Application) -> None:
        self.state: dict[str, Any] = {}
        self._application = application
        self._to_application: asyncio.Queue[Message] = asyncio.Queue()
        self._from_application: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def startup(self) -> None:
        """Raises StartFailed, or what the application raised."""
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        send = self._from_application.put
        self._task = asyncio.ensure_future(self._application(scope, self._to_application.get, send))
        await self._tell("startup")

    async def shutdown(self) -> None:
        """Raises like `startup`."""
        await self._tell("shutdown")
        if self._task is not None:
            await self._task

    async def _tell(self, what: str) -> None:
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
            # Starlette says why by raising right after it, and puts a whole traceback into the message
            await asyncio.wait({self._task}, timeout=1)
            if self._task.done():
                await self._task
            raise StartFailed(message.get("message", "").strip().rpartition("\n")[2] or message["type"])
