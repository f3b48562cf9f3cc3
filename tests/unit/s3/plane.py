"""The S3 plane in this process, on a store of its own: requests pass through everything but a socket."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import orjson

from sluice_s3.app.access.lookup_cache import LookupCache
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.iam.rows import USER, Identity
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.s3.gateway import Gateway
from sluice_s3.app.s3.services import Services
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.reading import BodyStream
from sluice_s3.app.store.store import Store
from tests.support.raw_http import Answer, Request
from tests.support.settings import ROOT
from tests.support.signing import Key, Way, sign_full
from tests.unit.jobs.two import stores

HOST = "gateway.test"
WAY = Way(HOST)


class Plane:
    """A gateway whose journals are written as soon as somebody waits for them."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.store, self.index = store, store.index
        self.journal_writers = {name: JournalWriter(one) for name, one in store.all.items()}
        self.dies = False
        """Whether nothing more is written down when it ends."""
        memory = BodyMemoryBudget(1 << 24)
        self.gateway = Gateway(
            Services(settings, store, LookupCache(store.index), memory), lambda *_: None, _no_health_check
        )
        self._writing: asyncio.Task[None] | None = None
        for one in store.all.values():
            one.journal_wakeup = self  # type: ignore[assignment]

    def wake(self) -> None:
        """Somebody waits for the journals."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        for journal_writer in self.journal_writers.values():
            await journal_writer.run_once()

    async def written(self) -> None:
        """Everything that was decided is written down."""
        await self.woken()
        await self._write()

    async def woken(self) -> None:
        """What somebody waited for is written down."""
        if self._writing is not None:
            await self._writing

    async def bucket(self, name: str) -> Bucket:
        found = await self.index.bucket(name)
        assert found is not None
        return found

    async def user(self, account_id: str, name: str, policy: dict[str, Any]) -> Key:
        """A new user of an account with this policy."""
        document = orjson.dumps({"policies": {"p": orjson.dumps(policy).decode()}}).decode()
        unique = "AIDA" + name.upper().ljust(17, "A")
        await self.index.add_identity(Identity(unique, account_id, USER, name, name, "/", document, 0), 1000)
        key = Key("AKIA" + name.upper().ljust(16, "A"), f"secret-of-{name}")
        await self.index.add_key(account_id, unique, *key, 2)
        return key

    async def ask(
        self, method: str, path: str, query: str = "", body: bytes = b"", key: Key = ROOT, **fields: str
    ) -> Answer:
        """Send a request; names of fields have `_` for `-`."""
        given = tuple((name.replace("_", "-"), value) for name, value in fields.items())
        return await self.send(sign_full(Request(method, path, query, given, body), key, WAY).request)

    async def send(self, asked: Request) -> Answer:
        """Send a request as it is."""
        request = S3Request()
        request.method, request.raw_path, request.raw_query = asked.method, asked.path.encode(), asked.query.encode()
        fields = [*asked.headers, ("content-length", str(len(asked.body)))]
        if asked.header("host") is None:
            fields.insert(0, ("host", HOST))
        request.set_headers([name.encode() for name, _ in fields], [value.encode() for _, value in fields])
        request.scheme, request.client = "http", "192.0.2.1"
        request.receive, request.whole_body = partial(_receive, asked.body), asked.body
        response = await self.gateway.respond(request)
        assert response is not None
        body = response.body if isinstance(response.body, bytes) else await _read(response.body)
        self.gateway.record(request, response, len(body))
        lines = response.head.decode().split("\r\n")[:-1]
        return Answer(
            response.status, {name: value for name, _, value in (line.partition(": ") for line in lines)}, body
        )


async def _receive(body: bytes) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": False}


async def _read(body: BodyStream) -> bytes:
    pieces = []
    async for piece in body:
        if isinstance(piece, bytes):
            pieces.append(piece)
        else:
            pieces.append(os.pread(piece.fd, piece.count, piece.offset))
            piece.release()
    await body.aclose()
    return b"".join(pieces)


async def _no_health_check(_: S3Request) -> None:
    return None


@asynccontextmanager
async def plane(settings: Settings) -> AsyncIterator[Plane]:
    """Open stores that were prepared before."""
    async with stores(settings) as store:
        made = Plane(settings, store)
        try:
            yield made
        finally:
            await (made.woken() if made.dies else made.written())
