"""The objects of a bucket as the caller's session may read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

from sluice_s3.app.access.presigned import CLIENT_PARAMETER, Signer, Target, presign
from sluice_s3.app.admin.archives.s3_connection import S3Connection
from sluice_s3.app.admin.archives.source import ObjectSource
from sluice_s3.app.admin.sessions.guard import Caller
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.regions import FIRST

ALL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - replaced, not bound to
SIGNATURE_SECONDS = 60


@contextmanager
def open_source(request: Request, caller: Caller, bucket: str) -> Iterator[ObjectSource]:
    """Yield the objects of a bucket; its connection ends with it. Raises HTTPException."""
    listener = loopback_listener(request)

    def sign(method: str, bucket: str, key: str | None, query: Mapping[str, str]) -> str:
        return loopback_url(request, caller, method, bucket, key, query)[0].removeprefix(listener)

    connection = S3Connection(listener, request.app.state.settings.tls_cert)
    try:
        yield ObjectSource(connection, sign, bucket)
    finally:
        connection.close()


def loopback_url(
    request: Request, caller: Caller, method: str, bucket: str, key: str | None, query: Mapping[str, str]
) -> tuple[str, Path | None]:
    """Return a presigned URL for a request from this machine, and the listener's certificate if it speaks TLS.

    Raises HTTPException.
    """
    if caller.session is None:
        raise HTTPException(400, "The admin token reads no objects. Sign in with an access key.")
    settings = cast(Settings, request.app.state.settings)
    listener, session = loopback_listener(request), caller.session.temporary
    signer = Signer(session.access_key, session.secret, session.token)
    region = FIRST if settings.region == "auto" else settings.region
    named = {**query, CLIENT_PARAMETER: caller.address}  # policies ask for the client's address, not for this process's
    url = presign(listener, region, signer, Target(method, bucket, key or "", named), SIGNATURE_SECONDS)
    return url, settings.tls_cert if listener.startswith("https://") else None


def loopback_listener(request: Request) -> str:
    """Return the URL of the S3 listener for this machine."""
    found = urlsplit(request.app.state.s3_listener)
    host = found.hostname or ""
    name = ALL_ADDRESSES.get(host, f"[{host}]" if ":" in host else host)
    return f"{found.scheme}://{name}:{found.port}"
