"""Presigned URLs of S3 by signature version 4, for those who hold a key's secret.

"Authenticating Requests: Using Query Parameters", Amazon S3 API Reference.
"""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote, urlsplit

LONGEST_SECONDS = 7 * 24 * 3600
"""The longest that AWS allows (https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-presigned-url.html)."""
ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
PAYLOAD_HEADER = "x-amz-content-sha256"
CLIENT_PARAMETER = "x-sluice-client"
"""Parameter by which the admin process names the client, on a URL that it signs for itself by a session's key."""
_SPACES = re.compile(r"[ \t]+")
_DOTS = frozenset({".", ".."})


class Signer(NamedTuple):
    """A key that signs."""

    access_key: str
    secret: str
    token: str | None = None
    """The session token of a temporary key."""

    def __repr__(self) -> str:
        return f"Signer({self.access_key!r})"


class Target(NamedTuple):
    """What a URL is for. `headers` are signed, so that the request must send them as they are here."""

    method: str
    bucket: str = ""
    key: str = ""
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}


def presign(endpoint: str, region: str, signer: Signer, target: Target, seconds: int) -> str:
    """Return a URL below `endpoint`, in path style, that is good for some seconds from now.

    Raises ValueError for header names that differ in case only.
    """
    place = urlsplit(endpoint)
    headers = {name.lower(): _SPACES.sub(" ", value).strip(" ") for name, value in target.headers.items()}
    if len(headers) < len(target.headers):
        raise ValueError("a header is repeated")
    headers["host"] = place.netloc
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    signed_headers = ";".join(sorted(headers))
    added = {
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{signer.access_key}/{scope}",
        "X-Amz-Date": now,
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": signed_headers,
        **({"X-Amz-Security-Token": signer.token} if signer.token else {}),
    }
    path = _path(target)
    query = "&".join("=".join(pair) for pair in sorted(map(_encoded, {**target.query, **added}.items())))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    payload = headers.get(PAYLOAD_HEADER, UNSIGNED_PAYLOAD)
    canonical = f"{target.method}\n{path}\n{query}\n{lines}\n{signed_headers}\n{payload}"
    text = f"{ALGORITHM}\n{now}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
    return f"{place.scheme}://{place.netloc}{path}?{query}&X-Amz-Signature={_sign(signer.secret, scope, text)}"


def _sign(secret: str, scope: str, text: str) -> str:
    key = b"AWS4" + secret.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), sha256)
    return hmac.digest(key, text.encode(), sha256).hex()


def _encoded(field: tuple[str, str]) -> tuple[str, str]:
    return quote(field[0], safe=""), quote(field[1], safe="")


def _path(target: Target) -> str:
    """Return the path, encoded.

    URL parsers resolve segments of one or two dots. Escaped slashes make such a key a single segment.
    """
    key = quote(target.key, safe="" if _DOTS & set(target.key.split("/")) else "/")
    return f"/{target.bucket}" + (f"/{key}" if target.key else "")
