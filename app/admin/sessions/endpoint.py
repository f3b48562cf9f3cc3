"""Where browsers reach S3."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request

from sluice_s3.app.admin.sessions.origin import request_origin
from sluice_s3.app.settings import Settings
from sluice_s3.app.settings.console import origin_of

S3_LISTENER = "s3"
"""Its name among the addresses of a server."""


def s3_endpoint(request: Request, settings: Settings, listener: str) -> str:
    """Return the URL of S3 for a browser: of the settings, else the console's host with the listener's port.

    `listener` is the URL of the S3 listener, whose host may be that of all addresses.
    """
    if settings.public_url:
        return settings.public_url
    own = urlsplit(listener)
    host = urlsplit(settings.console_url or request_origin(request)).hostname or "127.0.0.1"
    name = f"[{host}]" if ":" in host else host
    return origin_of(f"{own.scheme}://{name}:{own.port}")
