"""The console's page, which talks S3 from another port: it may read every answer, and browsers are led to it.

It has no credentials of the browser, but presigned URLs. Nothing changes for other origins and the rules of buckets.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from sluice_s3.app.s3.cors import rules as cors
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Headers, Response
from sluice_s3.app.settings.console import origin_of

PAGE = "/console/"
MAX_HOST = 255
PREFLIGHT_SECONDS = b"7200"
"""Seconds for which a browser keeps the answer to a preflight request: the most that Chromium does."""
HTML = "text/html"


class ConsoleSite:
    """Where the console is: at the URL of the settings, and beside S3 on the port of the admin listener."""

    def __init__(self, url: str, listener: str) -> None:
        """`url` is empty for none; `listener` is the URL of the admin listener, perhaps of all addresses."""
        self._url = url
        place = urlsplit(listener)
        self._scheme, self._host, self._port = place.scheme, place.hostname or "", place.port
        self._beside = lru_cache(256)(self._find_beside)

    def is_origin(self, request: S3Request) -> bool:
        """Return whether a request comes from a page of the console."""
        origin = request.headers.get(cors.ORIGIN)
        if origin is None or request.website:
            return False
        return bool(origin) and origin in (self._url, self._beside(_host(request)))

    def headers(self, request: S3Request) -> Headers:
        """Return the headers of an answer to a page of the console."""
        return [
            (b"access-control-allow-origin", request.headers[cors.ORIGIN].encode("latin-1")),
            (b"access-control-expose-headers", b"*"),
            (b"vary", cors.VARY),
        ]

    def preflight(self, request: S3Request) -> Response:
        """Answer a preflight request of a page of the console. Raises BadRequest."""
        cors.check_preflight(request)
        names = request.headers.get(cors.HEADERS, "")
        return Response(
            200,
            [
                *self.headers(request),
                (b"access-control-allow-methods", ", ".join(cors.METHODS).encode()),
                *([(b"access-control-allow-headers", names.encode("latin-1"))] if names else []),
                (b"access-control-max-age", PREFLIGHT_SECONDS),
            ],
        )

    def redirect(self, request: S3Request) -> Response | None:
        """Return the way to the console for a browser that opens the address of S3; None for other requests."""
        if request.method != "GET" or request.raw_query or request.bucket is not None:
            return None
        if HTML not in request.headers.get("accept", ""):
            return None
        origin = self._url or self._reachable(request)
        if not origin:
            return None
        return Response(302, [(b"location", f"{origin}{PAGE}".encode()), (b"cache-control", b"no-store")])

    def _reachable(self, request: S3Request) -> str:
        """Return the console's origin for a client who reaches it at the address that it asked for."""
        origin = self._beside(_host(request))
        host = urlsplit(origin).hostname or ""
        if _is_loopback(self._host) and not (_is_loopback(host) and _is_loopback(request.client)):
            return ""
        return origin

    def _find_beside(self, host: str) -> str:
        """Return the origin on the port of the admin listener, empty for a Host that is none."""
        try:
            name = urlsplit(origin_of(f"{self._scheme}://{host}")).hostname or ""
            bracketed = f"[{name}]" if ":" in name else name
            return origin_of(f"{self._scheme}://{bracketed}:{self._port}")
        except ValueError:
            return ""


def _host(request: S3Request) -> str:
    """Return the Host, empty for one that is too long to be kept."""
    host = request.headers.get("host", "")
    return host if len(host) <= MAX_HOST else ""


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
