"""When the admin listener reads a body, and for how long."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.admin.app import create_application
from sluice_s3.app.settings import Settings
from tests.support.settings import make_settings
from tests.unit.admin.test_admin import Alone
from tests.unit.server.tools import serving
from tests.unit.store.site import prepare

POST = b"POST /api/v1/accounts HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
TOKEN = b"Authorization: Bearer sesame-sesame\r\n"


@pytest.fixture
async def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, admin_token="sesame-sesame", document_timeout=0.3)
    await asyncio.to_thread(prepare, made)
    return made


async def ask(settings: Settings, data: bytes) -> Any:
    app = create_application(settings, Alone(b""))
    async with app.router.lifespan_context(app), serving(app) as site:
        return await site.ask(data)


@pytest.mark.parametrize("framing", [b"Content-Length: 1000\r\n", b"Transfer-Encoding: chunked\r\n"])
@pytest.mark.parametrize("token", [b"", b"Authorization: Bearer sesame\r\n"])
async def test_nothing_is_read_without_the_token(settings: Settings, framing: bytes, token: bytes) -> None:
    got = await ask(settings, POST + token + framing + b"\r\n")
    assert (got.status, got.headers["connection"]) == (401, "close")
    assert got.headers["www-authenticate"] == 'Basic realm="sluice admin"'


async def test_a_body_has_a_total_time(settings: Settings) -> None:
    got = await ask(settings, POST + TOKEN + b'Content-Length: 1000\r\n\r\n{"name": ')
    assert (got.status, got.headers["connection"]) == (408, "close")


async def test_a_body_that_comes_in_time(settings: Settings) -> None:
    body = b"{}"
    got = await ask(settings, POST + TOKEN + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    assert got.status in (200, 201), got.body
