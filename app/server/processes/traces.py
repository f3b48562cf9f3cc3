"""One OpenTelemetry span a request, sent by OTLP over HTTP.

Exporter, sampler and resource are configured by OpenTelemetry's own variables (`OTEL_EXPORTER_OTLP_ENDPOINT`,
`OTEL_TRACES_SAMPLER`, `OTEL_SERVICE_NAME`; "Environment variable specification"). Needs the extra `otel`.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from sluice_s3.app import __version__

if TYPE_CHECKING:
    from sluice_s3.app.s3.wire.request import S3Request

PARENT = "traceparent"
"""The header with the span of the caller (W3C Trace Context)."""
SHUTDOWN_MS = 3000
"""Milliseconds that the last spans may take at the end of a process."""


class RequestTraces:
    """The spans of one worker. A thread of the library sends them; when it cannot keep up, it drops some."""

    def __init__(self) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.ERROR)
        named = Resource({"service.name": "sluice", "service.version": __version__})
        resource = named.merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("sluice", __version__)
        self._propagator = TraceContextTextMapPropagator()

    def record(self, request: S3Request, status: int, code: str, received: int, sent: int, seconds: float) -> None:
        """Make the span of an answered request. The phases of `Server-Timing` are attributes, in seconds."""
        ended = time.time_ns()
        context = self._propagator.extract(request.headers) if PARENT in request.headers else None
        span = self._tracer.start_span(
            request.operation, context, SpanKind.SERVER, start_time=ended - round(seconds * 1e9)
        )
        if span.is_recording():
            span.set_attributes(
                {
                    "http.request.method": request.method,
                    "http.response.status_code": status,
                    "http.request.body.size": received,
                    "http.response.body.size": sent,
                    "client.address": request.client,
                    "aws.request_id": request.request_id,
                    **{f"sluice.phase.{name}": spent for name, spent in request.timings.items()},
                }
            )
            optional = {"aws.s3.bucket": request.bucket, "aws.s3.key": request.key, "error.type": code}
            span.set_attributes({name: value for name, value in optional.items() if value})
            if status >= 500:
                span.set_status(Status(StatusCode.ERROR, code))
        span.end(ended)

    def close(self) -> None:
        """Send what is left."""
        self._provider.force_flush(SHUTDOWN_MS)
        self._provider.shutdown()
