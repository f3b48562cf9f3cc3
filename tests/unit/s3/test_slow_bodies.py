"""Which bodies are documents, and which are read before anybody is known to have sent them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.raw_http import AsyncConnection, Request
from tests.support.settings import make_settings
from tests.support.signing import presign, sign_full
from tests.support.waiting import eventually_async
from tests.unit.s3.plane import HOST, ROOT, WAY, Plane, plane
from tests.unit.s3.test_form_logs import may_put
from tests.unit.server.tools import Site, serving
from tests.unit.store.site import prepare

pytestmark = pytest.mark.slow

FIELDS = b'--BB\r\nContent-Disposition: form-data; name="key"\r\n\r\nnew\r\n'
FILE = b'--BB\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nhello'
FORM = (("content-type", "multipart/form-data; boundary=BB"),)
SIZE = 1_000_000
IAM = (("content-type", "application/x-www-form-urlencoded"),)


@pytest.fixture
async def s3(tmp_path: Path) -> AsyncIterator[Plane]:
    settings = make_settings(tmp_path)
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as found:
        assert (await found.ask("PUT", "/open")).status == 200
        yield found


class Sending:
    """A client in the middle of a body."""

    def __init__(self, site: Site, client: AsyncConnection) -> None:
        self.site, self.client = site, client
        (self.cycle,) = site.state.running

    async def send(self, data: bytes, seconds: float = 0) -> None:
        """More of the body, after a while."""
        self.site.later(seconds)
        before = self.cycle.received
        await self.client.send(data)
        await eventually_async(lambda: self.cycle.received > before and self.cycle.wants_body)

    async def end(self) -> Any:
        """What 31 seconds end in, however much comes in them."""
        for _ in range(3):
            await self.send(bytes(40_000), 10)
        self.site.later(1)
        return await self.client.answer()


@asynccontextmanager
async def sending(s3: Plane, request: Request, body: bytes = b"") -> AsyncIterator[Sending]:
    async with serving(s3.gateway, sweeps=False) as site:
        client = await site.connect()
        await client.send(request.head(HOST) + body)
        await eventually_async(
            lambda: any(cycle.wants_body for cycle in site.state.running) or not site.state.connections
        )
        yield Sending(site, client)


def signed(method: str, path: str, query: str = "") -> Request:
    return presign(Request(method, path, query, length=SIZE), ROOT, WAY)


async def test_the_fields_of_a_form(s3: Plane) -> None:
    async with sending(s3, Request("POST", "/open", headers=FORM, length=SIZE), FIELDS) as form:
        assert len(form.site.state.unauthenticated) == 1
        field = b'--BB\r\nContent-Disposition: form-data; name="x-ignore-a"\r\n\r\n'
        await form.send(field, 10)
        for _ in range(2):
            await form.send(b"a" * 5_000, 10)
        form.site.later(1)
        assert (await form.client.answer()).code == "RequestTimeout"
        await eventually_async(lambda: not form.site.state.unauthenticated)


async def test_the_file_of_a_form_is_no_document(s3: Plane) -> None:
    await s3.ask("DELETE", "/open", "publicAccessBlock")
    assert (await s3.ask("PUT", "/open", "policy", may_put("open", "*"))).status == 204
    async with sending(s3, Request("POST", "/open", headers=FORM, length=SIZE), FIELDS + FILE) as form:
        for _ in range(10):
            await form.send(bytes(40_000), 10)
        await form.client.send(b"\r\n--BB--\r\n".rjust(1_000_000 - form.cycle.received))
        await eventually_async(lambda: not form.site.state.running)


@pytest.mark.parametrize("query", ["policy", "lifecycle", "acl"])
async def test_a_document_of_a_known_sender(s3: Plane, query: str) -> None:
    async with sending(s3, signed("PUT", "/open", query)) as document:
        assert not document.site.state.unauthenticated
        assert (await document.end()).code == "RequestTimeout"


async def test_an_object_of_a_known_sender(s3: Plane) -> None:
    async with sending(s3, signed("PUT", "/open/key")) as put:
        assert not put.site.state.unauthenticated
        for _ in range(3):
            await put.send(b"x", 10)
        put.site.later(1)
        assert (await put.client.answer()).code == "RequestTimeout"
    assert (await s3.ask("GET", "/open/key")).status == 404


async def test_an_object_at_a_slow_rate(s3: Plane) -> None:
    async with sending(s3, signed("PUT", "/open/key"), bytes(SIZE // 10)) as put:
        for _ in range(8):
            await put.send(bytes(SIZE // 10), 50)
        await put.client.send(bytes(SIZE // 10))
        assert (await put.client.answer()).status == 200


async def test_an_iam_form(s3: Plane) -> None:
    """Its signature is over its body, so that nobody is known before all of it came."""
    asked = sign_full(Request("POST", "/", headers=IAM), ROOT, WAY).request
    scoped = tuple((name, value.replace("/s3/", "/iam/")) for name, value in asked.headers)
    async with sending(s3, Request("POST", "/", headers=scoped, length=400_000)) as form:
        assert len(form.site.state.unauthenticated) == 1
        assert (await form.end()).code == "RequestTimeout"
