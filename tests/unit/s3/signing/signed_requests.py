"""Requests for the tests of signatures, made as a server makes them from the bytes on the wire."""

from __future__ import annotations

from urllib.parse import unquote, unquote_plus, urlsplit

from botocore.awsrequest import AWSRequest

from sluice_s3.app.s3.wire.request import S3Request

ACCESS_KEY = "AKIAIOSFODNN7EXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
REGION = "us-east-1"


def make(
    method: str = "GET",
    target: str = "/bucket/key",
    headers: list[tuple[str, str]] | dict[str, str] | None = None,
    *,
    virtual_host: str | None = None,
) -> S3Request:
    """The request that `METHOD target` with these headers is."""
    request = S3Request()
    request.method = method
    path, _, query = target.partition("?")
    request.raw_path = path.encode("latin-1")
    request.raw_query = query.encode("latin-1")
    items = list(headers.items()) if isinstance(headers, dict) else list(headers or [])
    request.set_headers([name.encode("latin-1") for name, _ in items], [value.encode("latin-1") for _, value in items])
    request.query = {}
    for part in query.split("&"):
        if part:
            name, _, value = part.partition("=")
            request.query.setdefault(unquote_plus(name), unquote_plus(value))
    request.virtual_host = virtual_host is not None
    segments = path.lstrip("/").split("/", 1)
    request.bucket = virtual_host or unquote(segments[0]) or None
    return request


def of_botocore(signed: AWSRequest, *, virtual_host: str | None = None) -> S3Request:
    """The request that a signed botocore request puts on the wire."""
    parts = urlsplit(signed.url)
    headers = [(name, value.decode() if isinstance(value, bytes) else value) for name, value in signed.headers.items()]
    if not any(name.lower() == "host" for name, _ in headers):
        headers.insert(0, ("host", parts.netloc))
    target = parts.path + ("?" + parts.query if parts.query else "")
    return make(signed.method, target, headers, virtual_host=virtual_host)
