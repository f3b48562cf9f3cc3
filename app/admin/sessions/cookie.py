"""The cookie of a session, and the token that its changes carry.

The cookie names the session's temporary key and when it was used last, with an HMAC by the session's secret, which
never leaves the server. The token is another HMAC by it.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

_FORM = re.compile(r"1\.(ASIA[A-Z2-7]{16})\.([0-9]{1,12})\.([A-Za-z0-9_-]{43})")
REISSUED_AFTER_SECONDS = 60
MAX_COOKIES = 4
"""Cookies of sessions that are looked at in a request."""


class SessionCookie(NamedTuple):
    """What a cookie claims, until its signature is checked."""

    access_key: str
    used: int
    """When the session was used last, in seconds since the epoch; at most `REISSUED_AFTER_SECONDS` too old."""
    signature: str

    def is_signed(self, secret: str) -> bool:
        """Return whether the cookie was made with a session's secret."""
        return hmac.compare_digest(self.signature, _sign(secret, f"cookie:{self.access_key}:{self.used}"))


def cookie_name(origin: str) -> str:
    """Return the name of the cookie of a console at an origin (`https://HOST:PORT`).

    Cookies are shared by all ports of a host, so that the name has the port. Browsers keep a `__Host-Http-` cookie
    of this host alone, and newer ones let no script set one; to others it is a `__Host-` cookie.
    """
    scheme, _, host = origin.partition("://")
    port = host.rpartition(":")[2] if re.search(r":[0-9]+$", host) else {"https": "443"}.get(scheme, "80")
    return f"__Host-Http-sluice-{port}" if scheme == "https" else f"sluice-{port}"


def write_cookie(origin: str, access_key: str, secret: str, now: int) -> str:
    """Return the value of Set-Cookie for a session at a time (seconds since the epoch)."""
    value = f"1.{access_key}.{now}.{_sign(secret, f'cookie:{access_key}:{now}')}"
    return f"{cookie_name(origin)}={value}; {_attributes(origin)}"


def clear_cookie(origin: str) -> str:
    """Return the value of Set-Cookie that removes the cookie."""
    return f"{cookie_name(origin)}=; Max-Age=0; {_attributes(origin)}"


def _attributes(origin: str) -> str:
    return "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if origin.startswith("https://") else "")


def read_cookies(fields: Sequence[str], origin: str) -> list[SessionCookie]:
    """Return the session cookies of an origin in the values of Cookie fields."""
    start = cookie_name(origin) + "="
    pairs = (pair.strip() for field in fields for pair in field.split(";"))
    values = (pair[len(start) :] for pair in pairs if pair.startswith(start))
    return [SessionCookie(match[1], int(match[2]), match[3]) for match in map(_FORM.fullmatch, values) if match]


def csrf_token(access_key: str, secret: str) -> str:
    """Return the token that every change of a session must carry."""
    return _sign(secret, f"csrf:{access_key}")


def _sign(secret: str, text: str) -> str:
    digest = hmac.digest(secret.encode(), text.encode(), sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
