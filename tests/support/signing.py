"""The one signer of the tests, written apart from the gateway's, so that it is an oracle.

It signs what it is given, right or wrong, and every element of a signature can be chosen.
`tests/unit/support/test_signing.py` compares it with botocore.
"""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha1, sha256
from typing import NamedTuple
from urllib.parse import quote

from tests.support.raw_http import Request

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY = sha256(b"").hexdigest()
UNSIGNED = "UNSIGNED-PAYLOAD"
SIGNED_CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_CHUNKS_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
UNSIGNED_CHUNKS_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


class Key(NamedTuple):
    """An access key with its secret."""

    access: str
    secret: str


@dataclass(frozen=True)
class Way:
    """How to sign. The defaults are right; tests change them one at a time."""

    host: str
    shift: float = 0.0
    """Seconds that the signer's clock is ahead."""
    day: str | None = None
    """Day of the scope, if not that of the time."""
    region: str = "us-east-1"
    service: str = "s3"
    terminator: str = "aws4_request"
    payload: str | None = None
    """x-amz-content-sha256, if not the body's hash; an empty string sends none and signs UNSIGNED-PAYLOAD."""
    leave_out: tuple[str, ...] = ()
    """Fields that are sent but not signed."""
    clock: str = "x-amz-date"
    """The field that carries the time: `x-amz-date`, `date` or none."""


class Signed(NamedTuple):
    """A signed request and what its chunks are signed with."""

    request: Request
    key: bytes
    timestamp: str
    scope: str
    signature: str


def stamp(shift: float = 0.0) -> str:
    """The time as signatures carry it."""
    return (datetime.now(UTC) + timedelta(seconds=shift)).strftime("%Y%m%dT%H%M%SZ")


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), sha256).digest()


def signing_key(secret: str, scope: str) -> bytes:
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = _hmac(key, part)
    return key


def _query(raw: str) -> str:
    pairs = [field if "=" in field else field + "=" for field in raw.split("&") if field]
    return "&".join(sorted(pairs, key=lambda field: tuple(field.split("=", 1))))


def _canonical(request: Request, names: list[str], host: str, payload: str) -> str:
    lines = ""
    for name in names:
        values = [" ".join(value.split()) for known, value in request.headers if known.lower() == name]
        lines += f"{name}:{','.join(values or [host])}\n"
    return f"{request.method}\n{request.path}\n{_query(request.query)}\n{lines}\n{';'.join(names)}\n{payload}"


def _signature(key: bytes, timestamp: str, scope: str, canonical: str) -> str:
    digest = sha256(canonical.encode("latin-1")).hexdigest()
    return _hmac(key, f"{ALGORITHM}\n{timestamp}\n{scope}\n{digest}").hex()


def sign_full(request: Request, key: Key, way: Way) -> Signed:
    """Sign in the Authorization header."""
    timestamp = stamp(way.shift)
    payload = sha256(request.body).hexdigest() if way.payload is None else way.payload
    fields = []
    if way.clock == "x-amz-date":
        fields.append(("x-amz-date", timestamp))
    elif way.clock == "date":
        moment = datetime.strptime(timestamp, "%Y%m%dT%H%M%SZ")
        fields.append(("date", moment.strftime("%a, %d %b %Y %H:%M:%S GMT")))
    if payload:
        fields.append(("x-amz-content-sha256", payload))
    request = request.having(*fields)
    names = sorted({"host", *(name.lower() for name, _ in request.headers)} - set(way.leave_out))
    scope = f"{way.day or timestamp[:8]}/{way.region}/{way.service}/{way.terminator}"
    secret = signing_key(key.secret, scope)
    signature = _signature(secret, timestamp, scope, _canonical(request, names, way.host, payload or UNSIGNED))
    value = f"{ALGORITHM} Credential={key.access}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}"
    return Signed(request.having(("authorization", value)), secret, timestamp, scope, signature)


def presign(
    request: Request,
    key: Key,
    way: Way,
    *,
    expires: str | None = "300",
    change: dict[str, str] | None = None,
) -> Request:
    """Sign in the query; `change` replaces X-Amz-... parameters, and an empty value leaves one out."""
    timestamp = stamp(way.shift)
    scope = f"{way.day or timestamp[:8]}/{way.region}/{way.service}/{way.terminator}"
    names = sorted({"host", *(name.lower() for name, _ in request.headers)} - set(way.leave_out))
    parameters = {
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{key.access}/{scope}",
        "X-Amz-Date": timestamp,
        "X-Amz-Expires": expires or "",
        "X-Amz-SignedHeaders": ";".join(names),
        **(change or {}),
    }
    fields = [f"{name}={quote(value, safe='')}" for name, value in parameters.items() if value]
    query = "&".join([*([request.query] if request.query else []), *fields])
    request = replace(request, query=query)
    canonical = _canonical(request, names, way.host, way.payload or UNSIGNED)
    signature = _signature(signing_key(key.secret, scope), timestamp, scope, canonical)
    return replace(request, query=f"{query}&X-Amz-Signature={signature}")


def sign_text(secret: str, scope: str, text: str) -> str:
    """Signature version 4 of a text, such as the policy of a form."""
    return _hmac(signing_key(secret, scope), text).hex()


def sign_policy(policy: str, key: Key, way: Way) -> dict[str, str]:
    """The fields of a form that sign its policy with version 4."""
    timestamp = stamp(way.shift)
    scope = f"{way.day or timestamp[:8]}/{way.region}/{way.service}/{way.terminator}"
    text = base64.b64encode(policy.encode()).decode()
    return {
        "policy": text,
        "x-amz-algorithm": ALGORITHM,
        "x-amz-credential": f"{key.access}/{scope}",
        "x-amz-date": timestamp,
        "x-amz-signature": sign_text(key.secret, scope, text),
    }


def sign_text_v2(secret: str, text: str) -> str:
    """Signature version 2 of a text."""
    return base64.b64encode(hmac.new(secret.encode(), text.encode(), sha1).digest()).decode()


def sign_v2(request: Request, key: Key) -> Request:
    """Signature version 2 in the Authorization header, of a request without sub-resources."""
    date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    text = f"{request.method}\n\n{request.header('content-type') or ''}\n{date}\n{request.path}"
    return request.having(("date", date), ("authorization", f"AWS {key.access}:{sign_text_v2(key.secret, text)}"))


def presign_v2(request: Request, key: Key, expires: int, signed_query: str = "") -> Request:
    """Signature version 2 in the query; it covers `signed_query` in place of the request's own."""
    resource = request.path + (f"?{signed_query}" if signed_query else "")
    signature = sign_text_v2(key.secret, f"{request.method}\n\n\n{expires}\n{resource}")
    parameters = f"AWSAccessKeyId={key.access}&Expires={expires}&Signature={quote(signature, safe='')}"
    return replace(request, query=f"{request.query}&{parameters}" if request.query else parameters)


def sign_policy_v2(policy: str, key: Key) -> dict[str, str]:
    """The fields of a form that sign its policy with version 2."""
    text = base64.b64encode(policy.encode()).decode()
    return {"AWSAccessKeyId": key.access, "policy": text, "signature": sign_text_v2(key.secret, text)}


@dataclass(frozen=True)
class Chunk:
    """One chunk on the wire."""

    size: str
    data: bytes
    extension: str = ""

    def wire(self) -> bytes:
        return f"{self.size}{self.extension}\r\n".encode() + (self.data + b"\r\n" if self.data else b"")


def chunk_signature(signed: Signed, previous: str, data: bytes) -> str:
    """The signature of a chunk behind another."""
    digest = sha256(data).hexdigest()
    text = f"{ALGORITHM}-PAYLOAD\n{signed.timestamp}\n{signed.scope}\n{previous}\n{EMPTY}\n{digest}"
    return _hmac(signed.key, text).hex()


def trailer_signature(signed: Signed, previous: str, trailers: str) -> str:
    """The signature of the trailing fields (`name:value\\n` each) behind the last chunk."""
    digest = sha256(trailers.encode()).hexdigest()
    text = f"{ALGORITHM}-TRAILER\n{signed.timestamp}\n{signed.scope}\n{previous}\n{digest}"
    return _hmac(signed.key, text).hex()


def chunks_of(signed: Signed, pieces: list[bytes]) -> list[Chunk]:
    """Signed chunks of the pieces, and the final empty one."""
    chunks = []
    previous = signed.signature
    for piece in [*pieces, b""]:
        previous = chunk_signature(signed, previous, piece)
        chunks.append(Chunk(f"{len(piece):x}", piece, f";chunk-signature={previous}"))
    return chunks


def plain_chunks(pieces: list[bytes]) -> list[Chunk]:
    """Unsigned chunks of the pieces, and the final empty one."""
    return [Chunk(f"{len(piece):x}", piece) for piece in [*pieces, b""]]
