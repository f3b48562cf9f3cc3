"""Settings of the console and of signing in to it: a part of `Settings`."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?")
"""A name, or an address; nothing that would mean more where the origin is written into a header."""


class ConsoleSettings(BaseSettings):
    """Settings of the console. Times are seconds."""

    console: bool = Field(True, description="Serve the console on the admin listener, and let people sign in to it.")
    console_url: str = Field(
        "",
        description="URL that browsers reach the console at (`https://HOST[:PORT]`), to be set behind a proxy; unset: "
        "the address that they ask for.",
    )
    public_url: str = Field(
        "",
        description="URL that browsers and receivers of shared links reach S3 at (`https://HOST[:PORT]`), to be set "
        "behind a proxy; unset: the host of the console with the port of the S3 listener.",
    )
    console_insecure: bool = Field(
        False,
        description="Let people sign in to the console without TLS from other machines too. Everybody on the way can "
        "read the secret key then.",
    )
    console_session: int = Field(
        43_200, ge=900, le=129_600, description="How long one is signed in to the console at most."
    )
    console_idle: int = Field(
        1800, ge=60, le=129_600, description="Who does nothing in the console for so long is signed out."
    )

    @field_validator("console_url", "public_url")
    @classmethod
    def _check_url(cls, text: str) -> str:
        """Return the URL as browsers write an origin."""
        return origin_of(text) if text else ""


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL that has no more, without the default port. Raises ValueError."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if (
        not host
        or not _HOST.fullmatch(host)
        or parts.scheme not in ("http", "https")
        or parts.path not in ("", "/")
        or parts.query
        or "@" in url
    ):
        raise ValueError("give http://HOST[:PORT] or https://HOST[:PORT]")
    name = f"[{host}]" if ":" in host else host
    default = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{name}" + ("" if port in (None, default) else f":{port}")
