"""The same server behind TLS: no file goes past the encryption."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.environment import need
from tests.support.waiting import eventually_async
from tests.unit.server.apps import answer, read_body
from tests.unit.server.files import Files
from tests.unit.server.tools import Recorder, serving

GET = b"GET /b/k HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.fixture(scope="module")
def cert(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    need("openssl")
    where = tmp_path_factory.mktemp("tls")
    certificate, key = where / "cert.pem", where / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    subject = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run([*command.split(), *subject], check=True, capture_output=True)
    return certificate, key


async def test_requests_over_tls(cert: tuple[Path, Path]) -> None:
    scopes: list[Any] = []
    body = os.urandom(3_000_000)

    async def echo(scope: Any, receive: Any, send: Any) -> None:
        scopes.append(scope)
        await answer(send, await read_body(receive) or b"")

    async with serving(echo, cert=cert) as site:
        client = await site.connect()
        for _ in range(2):
            raw = b"PUT /b/k HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body)
            assert (await client.ask(raw + body)).body == body
        assert (await client.ask(GET)).status == 200
        assert scopes[0]["scheme"] == "https"


@pytest.mark.parametrize("waits", [False, True])
async def test_no_file_goes_past_the_encryption(cert: tuple[Path, Path], tmp_path: Path, waits: bool) -> None:
    content = os.urandom(3_000_000)
    path = tmp_path / "blob"
    path.write_bytes(content)
    files = Files(path)
    files.waits = waits
    async with serving(files, cert=cert) as site:
        client = await site.connect()
        for _ in range(2):
            assert (await client.ask(b"GET /7/2500000 HTTP/1.1\r\nHost: h\r\n\r\n")).body == content[7:2_500_007]
        await eventually_async(lambda: files.sent == [2_500_000] * 2)


async def test_idle_connections_and_refusals_over_tls(cert: tuple[Path, Path]) -> None:
    async with serving(Recorder(), cert=cert, keep_alive_timeout=0.2) as site:
        idle = await site.connect()
        assert (await idle.ask(GET)).status == 200
        assert await idle.rest() == b""
        bad = await site.connect()
        assert (await bad.ask(b"GET /b HTTP/1.1\r\n\r\n")).code == "BadRequest"
        await bad.lost()


async def test_a_drain_over_tls(cert: tuple[Path, Path]) -> None:
    async with serving(Recorder(), cert=cert) as site:
        client = await site.connect()
        assert (await client.ask(GET)).status == 200
        site.sweeper.drain(patient=True)
        got = await client.ask(GET)
        assert (got.status, got.headers["connection"]) == (200, "close")
        await eventually_async(lambda: not site.state.connections)
