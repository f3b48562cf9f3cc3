"""`/minio/v2/metrics/cluster` on the S3 listener: the page `/metrics` of the admin listener, for MinIO's scrape jobs.

Source: MinIO's "Metrics v2" and `mc admin prometheus generate`, which makes a JSON Web Token (RFC 7519) of a key pair.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import logging
import re
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sluice_s3.app.access.lookup_cache import LookupCache
from sluice_s3.app.access.root_credentials import admin_token, root_account_id
from sluice_s3.app.eager_task import enter_task
from sluice_s3.app.index import Index
from sluice_s3.app.index.journals.rows import ROOT_NOTE
from sluice_s3.app.s3.errors import AccessDenied, ServiceUnavailable
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.server.processes.listen import read_addresses
from sluice_s3.app.settings import Settings

logger = logging.getLogger("sluice.server")

PATH = b"/minio/v2/metrics/cluster"
SCRAPE_SECONDS = 10.0
"""Seconds that the admin listener may take."""
ALGORITHM = "HS512"
TEXT = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


ACCESS_KEY = re.compile(r"[!-~]{3,128}")
"""What may be an access key: the index is not searched for anything else."""


class MinioMetrics:
    """Answers requests for the page, with a token unless the settings make it public."""

    def __init__(self, settings: Settings, index: Index, cache: LookupCache) -> None:
        self._settings = settings
        self._index = index
        self._cache = cache

    async def answer(self, request: S3Request) -> Response | None:
        """Return the page; None for a request that is S3's, and where there is no admin listener.

        Raises AccessDenied, and ServiceUnavailable while the admin listener does not answer.
        """
        if self._settings.admin_port < 0:
            return None
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme and scheme.lower() != "bearer":
            return None
        await enter_task()
        try:
            if self._settings.prometheus_auth != "public" and not await self._is_allowed(token.strip()):
                raise AccessDenied()
            async with asyncio.timeout(SCRAPE_SECONDS):
                return Response(200, [TEXT], await _scrape(self._settings.run_dir))
        except (OSError, TimeoutError, LookupError, ValueError) as error:
            logger.warning("the admin listener gave no metrics: %s", type(error).__name__)
            raise ServiceUnavailable() from None

    async def _is_allowed(self, token: str) -> bool:
        own = await asyncio.to_thread(admin_token, self._settings)
        if hmac.compare_digest(token.encode("latin-1", "replace"), own.encode()):
            return True
        access_key = unverified_subject(token)
        key = await self._cache.key(access_key) if access_key else None
        if key is None or key.disabled or key.holder is not None or key.token:
            return False
        first = root_account_id(await self._index.note(ROOT_NOTE))
        return key.account_id == first and is_valid(token, key.secret, time.time)


def unverified_subject(token: str) -> str | None:
    """Return the access key that a token claims to be of; None for what is no token."""
    try:
        subject = _decoded(token.split(".")[1])["sub"]
    except (ValueError, LookupError, TypeError):
        return None
    return subject if isinstance(subject, str) and ACCESS_KEY.fullmatch(subject) else None


def is_valid(token: str, secret: str, now: Callable[[], float]) -> bool:
    """Return whether a token is signed with a secret by HMAC-SHA-512 and has not expired."""
    signed, _, signature = token.rpartition(".")
    digest = hmac.digest(secret.encode(), signed.encode(), hashlib.sha512)
    expected = base64.urlsafe_b64encode(digest).rstrip(b"=")
    if not hmac.compare_digest(signature.encode(), expected):
        return False
    try:
        header, claims = map(_decoded, signed.split("."))
    except ValueError:
        return False
    expires = claims.get("exp")
    return header.get("alg") == ALGORITHM and isinstance(expires, int) and expires > now()


def _decoded(part: str) -> dict[str, Any]:
    """Return a JSON object of a token. Raises ValueError."""
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, UnicodeError, RecursionError):
        raise ValueError(part) from None
    if not isinstance(found, dict):
        raise ValueError(part)
    return found


def _trust_any() -> ssl.SSLContext:
    """Return a context that takes any certificate: this server's own names the outside, not this address."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _scrape(run_dir: Path) -> bytes:
    """Return the page of this server's admin listener. Raises OSError, LookupError, ValueError."""
    url = urlsplit(read_addresses(run_dir)["admin"])
    tls = _trust_any() if url.scheme == "https" else None
    reader, writer = await asyncio.open_connection(url.hostname, url.port, ssl=tls)
    try:
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise ValueError(head[:16])
        return await reader.read()
    except asyncio.IncompleteReadError as error:
        raise ValueError("the connection ended early") from error
    finally:
        writer.close()
