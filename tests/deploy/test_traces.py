"""Spans of requests, as a collector of OpenTelemetry gets them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector(BaseHTTPRequestHandler):
    """Takes spans by OTLP over HTTP."""

    spans: list[Any] = []
    resources: list[Any] = []

    def do_POST(self) -> None:
        message = ExportTraceServiceRequest()
        message.ParseFromString(self.rfile.read(int(self.headers["content-length"])))
        for batch in message.resource_spans:
            self.resources.append({one.key: one.value.string_value for one in batch.resource.attributes})
            for scope in batch.scope_spans:
                self.spans.extend(scope.spans)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture
def collector() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_request_is_a_span_of_its_callers_trace(tmp_path: Path, collector: str) -> None:
    env = {"SLUICE_TRACES": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": collector, "OTEL_BSP_SCHEDULE_DELAY": "100"}
    with Gateway(tmp_path / "data", workers=1, env=env) as gateway:
        s3 = client(gateway.endpoint)
        s3.meta.events.register(
            "before-send.s3.PutObject",
            lambda request, **_: request.headers.__setitem__("traceparent", f"00-{TRACE}-{PARENT}-01"),
        )
        s3.create_bucket(Bucket="first")
        s3.put_object(Bucket="first", Key="k", Body=bytes(1000))
        with pytest.raises(ClientError):
            s3.get_object(Bucket="first", Key="missing")
        gateway.stop()  # the last ones are sent at the end
        spans = eventually(lambda: len(Collector.spans) >= 3 and {one.name: one for one in Collector.spans})
    put, refused = spans["PutObject"], spans["GetObject"]
    assert (put.trace_id.hex(), put.parent_span_id.hex()) == (TRACE, PARENT)
    assert refused.trace_id != put.trace_id
    found = {one.key: one.value for one in put.attributes}
    assert found["aws.s3.bucket"].string_value == "first"
    assert found["http.response.status_code"].int_value == 200
    assert found["http.request.body.size"].int_value >= 1000
    assert 0 < found["sluice.phase.commit"].double_value * 1e9 <= put.end_time_unix_nano - put.start_time_unix_nano
    codes = {one.key: one.value.string_value for one in refused.attributes}
    assert codes["error.type"] == "NoSuchKey"
    assert Collector.resources[0]["service.name"] == "sluice"
