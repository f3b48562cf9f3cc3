"""Where a request was sent to, and which page sent it.

Ports are no part of a site or of a cookie: a page of the S3 listener has the console's cookies. Only its origin
differs.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

from sluice_s3.app.settings import Settings
from sluice_s3.app.settings.console import origin_of

TRUSTED_PROXY = "sluice.trusted_proxy"
"""Key of a scope whose connection comes from a proxy that the settings trust."""
FOREIGN = "This change was sent by another page than the console. Use the console at its own address."
INSECURE = (
    "Without TLS one can sign in from this machine only, as http://localhost. Give the gateway a certificate"
    " (SLUICE_TLS_CERT, SLUICE_TLS_KEY), or name the proxy that has one (SLUICE_CONSOLE_URL), or set"
    " SLUICE_CONSOLE_INSECURE=true for a network that you trust."
)


def client_address(request: Request) -> str:
    """Return the address of the client, which a trusted proxy may have named."""
    return request.client.host if request.client is not None else ""


def request_origin(request: Request) -> str:
    """Return scheme, host and port that a request was sent to; empty for a Host that is none."""
    scheme = request.scope["scheme"]
    if request.scope.get(TRUSTED_PROXY):
        forwarded = request.headers.get("x-forwarded-proto", scheme).strip().lower()
        scheme = forwarded if forwarded in ("http", "https") else scheme
    try:
        return origin_of(f"{scheme}://{request.headers.get('host', '')}")
    except ValueError:
        return ""


def console_origins(request: Request, settings: Settings) -> list[str]:
    """Return the origins that the console has for a request: where it was sent to, and the URL of the settings."""
    return [one for one in dict.fromkeys((request_origin(request), settings.console_url)) if one]


def page_origin(request: Request, settings: Settings) -> str:
    """Return the origin of the page that sent a change. Raises HTTPException unless it is the console's."""
    origin = request.headers.get("origin", "")
    if origin not in console_origins(request, settings) or is_foreign(request):
        raise HTTPException(403, FOREIGN)
    return origin


def is_foreign(request: Request) -> bool:
    """Return whether a browser says that another page than the console's sent a request."""
    return request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none")


def check_confidential(request: Request, origin: str, settings: Settings) -> None:
    """Raise HTTPException unless a secret may be sent from a page of `origin`.

    Without TLS only within this machine, under a name that no foreign server can have (DNS rebinding).
    """
    if origin.startswith("https://") or settings.console_insecure:
        return
    if not (_is_loopback(client_address(request)) and _is_loopback(urlsplit(origin).hostname or "")):
        raise HTTPException(403, INSECURE)


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
