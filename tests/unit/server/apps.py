"""Small ASGI applications that the server's tests run behind it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sluice_s3.app.index.object_lock import retention_clock


class Listener:
    """What a process serves: an ASGI application, which needs nothing to run."""

    gateway = websites = None

    @property
    def application(self) -> Any:
        return self

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        yield


async def answer(send: Any, body: bytes, status: int = 200, headers: Any = ()) -> None:
    head = [(b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def read_body(receive: Any) -> bytes | None:
    pieces = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        pieces.append(message["body"])
        if not message["more_body"]:
            return b"".join(pieces)


class Served(Listener):
    """Answers by path: /pid, /clock, /echo, /sleep?SECONDS, and `ok` for the rest."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["raw_path"]
        if path == b"/pid":
            await answer(send, b"%d" % os.getpid())
        elif path == b"/clock":
            await answer(send, b"%d %d" % retention_clock.clock.began)
        elif path == b"/echo":
            await answer(send, await read_body(receive) or b"")
        elif path == b"/sleep":
            await asyncio.sleep(float(scope["query_string"]))
            await answer(send, b"slept")
        else:
            await answer(send, b"ok")


def create(settings: Any, context: Any) -> Served:
    return Served()


def create_broken(settings: Any, context: Any) -> Served:
    raise RuntimeError("this application cannot start")


def create_unless_broken(settings: Any, context: Any) -> Served:
    if (settings.data / "broken").exists():
        raise RuntimeError("broken")
    return Served()


def create_slowly(settings: Any, context: Any) -> Served:
    while (settings.data / "slow").exists():
        (settings.data / "starting").touch()
        time.sleep(0.01)
    return Served()


class FailsToStart(Listener):
    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        raise OSError("the index is on the moon")
        yield


def create_failing(settings: Any, context: Any) -> Any:
    return FailsToStart()


class Metrics(Listener):
    def __init__(self, render: Any) -> None:
        self.render = render

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await answer(send, self.render())


def create_metrics(settings: Any, context: Any) -> Metrics:
    return Metrics(context.counters.render)
