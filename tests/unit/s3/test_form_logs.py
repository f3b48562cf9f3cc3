"""What an access log tells of an upload by a form, and of a request without a finished response."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import orjson

from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from tests.support.raw_http import Request
from tests.support.settings import make_settings
from tests.unit.s3.plane import plane
from tests.unit.store.site import prepare

LOGGED = (
    b"<BucketLoggingStatus><LoggingEnabled><TargetBucket>logs</TargetBucket><TargetPrefix>x</TargetPrefix>"
    b"</LoggingEnabled></BucketLoggingStatus>"
)
FORM = (
    b'--BB\r\nContent-Disposition: form-data; name="key"\r\n\r\nnew\r\n'
    b'--BB\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nhello\r\n--BB--\r\n'
)


def may_put(bucket: str, principal: object) -> bytes:
    statement = {"Effect": "Allow", "Principal": principal, "Action": "s3:PutObject"}
    statement["Resource"] = f"arn:aws:s3:::{bucket}/*"
    return orjson.dumps({"Version": "2012-10-17", "Statement": [statement]})


async def test_a_form_of_somebody_else_is_told_of(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as s3:
        for answer in [
            await s3.ask("PUT", "/open"),
            await s3.ask("PUT", "/logs"),
            await s3.ask("DELETE", "/open", "publicAccessBlock"),
            await s3.ask("PUT", "/open", "policy", may_put("open", "*")),
            await s3.ask("PUT", "/logs", "policy", may_put("logs", {"Service": "logging.s3.amazonaws.com"})),
            await s3.ask("PUT", "/open", "logging", LOGGED),
        ]:
            assert answer.status in (200, 204), answer
        form = Request("POST", "/open", "", (("content-type", "multipart/form-data; boundary=BB"),), FORM)
        assert (await s3.send(form)).status == 204
        ((_, lines),) = s3.gateway.logs._pending.values()
        (line,) = lines
        assert 'REST.POST.OBJECT new "POST /open HTTP/1.1" 204 ' in line


async def test_a_request_that_no_response_was_finished_for_has_its_line(tmp_path: Path) -> None:
    """The server answered it: by a refusal while it ran, or with 500."""
    settings = make_settings(tmp_path)
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as s3:
        for answer in [
            await s3.ask("PUT", "/logs"),
            await s3.ask("PUT", "/logs", "policy", may_put("logs", {"Service": "logging.s3.amazonaws.com"})),
            await s3.ask("PUT", "/logs", "logging", LOGGED),
        ]:
            assert answer.status in (200, 204), answer
        request = S3Request()
        request.method, request.raw_path, request.raw_query = "GET", b"/logs/k", b""
        request.set_headers([], [])
        request.client, request.bucket, request.key, request.operation = "192.0.2.1", "logs", "k", "GetObject"
        request.bucket_row, request.query = await s3.index.bucket("logs"), {}
        request.started, request.timings, request.error_code = time.perf_counter(), {}, "InternalError"
        s3.gateway.record(request, Response(500), 300)
        ((_, lines),) = s3.gateway.logs._pending.values()
        assert " 500 InternalError 300 " in lines[-1]
