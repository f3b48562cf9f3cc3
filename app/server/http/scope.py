"""The ASGI scope of a request."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

from sluice_s3.app.s3.wire.request import REQUEST, S3Request

TRUSTED_PROXY = "sluice.trusted_proxy"
"""Key of the scope, true on connections from a proxy that the settings trust."""
LIVE = "sluice.live"
"""A message by which an application says that its answer is a stream of events: see `HttpState.leave_running`."""
EXTENSIONS: dict[str, dict[str, Any]] = {LIVE: {}}


def scope_template(transport: asyncio.BaseTransport) -> dict[str, Any]:
    """Return the parts that every scope of a connection shares."""
    peer = transport.get_extra_info("peername")
    own = transport.get_extra_info("sockname")
    tls = transport.get_extra_info("sslcontext") is not None
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "root_path": "",
        "scheme": "https" if tls else "http",
        "client": peer[:2] if isinstance(peer, tuple) else None,
        "server": own[:2] if isinstance(own, tuple) else None,
        "extensions": EXTENSIONS,
    }


def build_scope(template: dict[str, Any], request: S3Request, version: str) -> dict[str, Any]:
    """Return the scope of a request on a connection with this template."""
    path = request.raw_path.decode("ascii")
    scope = template.copy()
    scope["http_version"] = version
    scope["method"] = request.method
    scope["path"] = unquote(path) if "%" in path else path
    scope["raw_path"] = request.raw_path
    scope["query_string"] = request.raw_query
    scope["headers"] = request.header_list
    scope[REQUEST] = request
    if TRUSTED_PROXY in template:
        scope["client"] = (request.client, 0)
    return scope
