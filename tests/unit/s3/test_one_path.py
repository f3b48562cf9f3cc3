"""What every request gets on its one way: a number, a line in the logs of its bucket, an answer to a failed check."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import orjson
import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.s3.wire import target
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.server.http.connection import Connection
from sluice_s3.app.server.http.state import HttpState
from tests.support.raw_http import Request
from tests.support.settings import make_settings
from tests.unit.s3.plane import plane
from tests.unit.s3.test_fast_path import two
from tests.unit.s3.test_form_logs import LOGGED, may_put
from tests.unit.store.site import prepare


async def test_the_log_tells_the_size_of_what_was_written(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as s3:
        for answer in [
            await s3.ask("PUT", "/source"),
            await s3.ask("PUT", "/logs"),
            await s3.ask("PUT", "/logs", "policy", may_put("logs", {"Service": "logging.s3.amazonaws.com"})),
            await s3.ask("PUT", "/source", "logging", LOGGED),
            await s3.ask("PUT", "/source/key", body=b"seven b"),
        ]:
            assert answer.status in (200, 204), answer
        refused = await s3.ask("PUT", "/source/key", body=b"seven b", if_none_match="*")
        assert refused.status == 412
        ((_, lines),) = s3.gateway.logs._pending.values()
        assert '"PUT /source/key HTTP/1.1" 200 - - 7 ' in lines[-2]
        assert '"PUT /source/key HTTP/1.1" 412 PreconditionFailed ' in lines[-1]
        assert lines[-1].split('HTTP/1.1" 412 PreconditionFailed ')[1].split()[1] == "7"


async def test_a_health_check_that_fails_is_an_answer_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: S3Request) -> Response | None:
        raise StoreUnavailable(reason="away")

    settings = make_settings(tmp_path)
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as s3:
        monkeypatch.setattr(s3.gateway, "_answer_health_check", fail)
        answer = await s3.send(Request("GET", "/minio/health/live"))
    assert answer.status == 503
    assert answer.headers["x-amz-request-id"]


async def test_websites_have_no_health_checks(tmp_path: Path) -> None:
    """Their listener gives the objects of websites alone, whatever these are called."""
    async with two(tmp_path) as gateway:
        state = HttpState(gateway.app._settings, gateway.context.memory)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Connection(state, None, gateway.app.websites, starts_eagerly=True), "127.0.0.1", 0
        )
        try:
            port = server.sockets[0].getsockname()[1]
            for path in ("/-/health/live", "/-/health/ready", "/minio/health/live"):
                answer = await gateway.ask(port, Request("GET", path).wire("site.test"))
                assert answer.startswith(b"HTTP/1.1 404 "), answer
                assert b"NoSuchBucket" in answer
        finally:
            server.close()
            for connection in list(state.connections):
                connection.abort()


async def test_permissions_that_wait_for_the_object_leave_no_reference_cycle(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    await asyncio.to_thread(prepare, settings)
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::open/*"}
    statement |= {"Condition": {"StringEquals": {"s3:ExistingObjectTag/a": "b"}}}
    async with plane(settings) as s3:
        for answer in [
            await s3.ask("PUT", "/open"),
            await s3.ask("PUT", "/open/key", body=b"tagged", x_amz_tagging="a=b"),
            await s3.ask("DELETE", "/open", "publicAccessBlock"),
            await s3.ask("PUT", "/open", "policy", orjson.dumps({"Version": "2012-10-17", "Statement": [statement]})),
        ]:
            assert answer.status in (200, 204), answer
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            assert (await s3.send(Request("GET", "/open/key"))).body == b"tagged"
            gc.collect()
            left = {type(found).__name__ for found in gc.garbage}
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    assert left.isdisjoint({"S3Request", "ConditionContext"}), left


def test_long_host_names_do_not_stay_in_memory() -> None:
    cached = target._find_bucket.cache_info().currsize
    for number in range(10):
        host = f"{number}{'x' * target.MAX_HOST}.virtual.test"
        assert target.bucket_of_host(host, ("virtual.test",)) == host.removesuffix(".virtual.test")
    assert target._find_bucket.cache_info().currsize == cached
