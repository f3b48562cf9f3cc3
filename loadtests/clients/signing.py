"""Signature version 4 for requests that are prepared before the clock starts."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Iterable
from typing import NamedTuple

from sluice_s3.loadtests.clients.credentials import Credentials, Source

UNSIGNED = "UNSIGNED-PAYLOAD"
SIGNED_HEADERS = "host;x-amz-content-sha256;x-amz-date"
EMPTY = hashlib.sha256(b"").hexdigest()


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


class Signed(NamedTuple):
    """A signed head, and what the chunks of its body are signed with."""

    head: bytes
    signature: str
    date: str
    scope: str
    key: bytes

    def sign_chunk(self, previous: str, data: bytes | memoryview) -> str:
        """Return the signature of a chunk after one (or a head) with the signature `previous`."""
        digest = hashlib.sha256(data).hexdigest()
        text = f"AWS4-HMAC-SHA256-PAYLOAD\n{self.date}\n{self.scope}\n{previous}\n{EMPTY}\n{digest}"
        return _hmac(self.key, text).hex()

    def sign_trailer(self, previous: str, lines: str) -> str:
        """Return the signature of trailing headers, `name:value` with a line feed each, after the last chunk's."""
        digest = hashlib.sha256(lines.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256-TRAILER\n{self.date}\n{self.scope}\n{previous}\n{digest}"
        return _hmac(self.key, text).hex()


class Field(NamedTuple):
    """A field of a head. `value` is None for what the signer fills in: host, date, payload, signature."""

    name: str
    value: str | None = None
    signed: bool = True


class SigningDate(NamedTuple):
    """What the signatures of one second have in common."""

    second: int
    date: str
    scope: str
    key: bytes
    access_key: str
    token: str


class Signer:
    """Creates request heads for one endpoint; threads may share it.

    A head is valid for 15 minutes, as the signature's date allows.
    """

    def __init__(
        self, host: str, access_key: str, secret_key: str, region: str = "us-east-1", *, source: Source | None = None
    ) -> None:
        given = Credentials(access_key, secret_key)
        self._source = source or (lambda: given)
        self._host = host
        self._region = region
        self._latest = self._signing_date(0)

    def _signing_date(self, second: int) -> SigningDate:
        date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
        day = date[:8]
        credentials = self._source()
        key = _hmac(b"AWS4" + credentials.secret_key.encode(), day)
        for part in (self._region, "s3", "aws4_request"):
            key = _hmac(key, part)
        scope = f"{day}/{self._region}/s3/aws4_request"
        return SigningDate(second, date, scope, key, credentials.access_key, credentials.session_token)

    def _at(self, now: float | None) -> SigningDate:
        second = int(time.time() if now is None else now)
        # Read and replaced as a whole: fields of two seconds would make a wrong signature.
        latest = self._latest
        if latest.second != second:
            latest = self._latest = self._signing_date(second)
        return latest

    def head(
        self, method: str, path: str, query: str = "", length: int | None = None, *, now: float | None = None
    ) -> bytes:
        """Return the signed head of a request, with `Content-Length` if `length` (bytes) is set.

        `path` and `query` are used as they are: they must be in the form that is signed (encoded, sorted, `name=`).
        `now` is the signing time in seconds since 1970.
        """
        _, date, scope, key, access_key, token = self._at(now)
        signed, names, sent = "", SIGNED_HEADERS, ""
        if token:
            signed, names = f"x-amz-security-token:{token}\n", f"{SIGNED_HEADERS};x-amz-security-token"
            sent = f"x-amz-security-token: {token}\r\n"
        canonical = (
            f"{method}\n{path}\n{query}\nhost:{self._host}\nx-amz-content-sha256:{UNSIGNED}\n"
            f"x-amz-date:{date}\n{signed}\n{names}\n{UNSIGNED}"
        )
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        signature = _hmac(key, f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}").hex()
        target = f"{path}?{query}" if query else path
        body = "" if length is None else f"Content-Length: {length}\r\n"
        return (
            f"{method} {target} HTTP/1.1\r\nHost: {self._host}\r\nx-amz-content-sha256: {UNSIGNED}\r\n"
            f"x-amz-date: {date}\r\n{sent}"
            f"Authorization: AWS4-HMAC-SHA256 Credential={access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}\r\n{body}\r\n"
        ).encode()

    def sign(
        self,
        method: str,
        target: str,
        payload: str,
        fields: Iterable[Field],
        *,
        separator: str = ", ",
        now: float | None = None,
    ) -> Signed:
        """Return a head with `fields` in their order and case.

        `target` is sent as it is: path and query in the form that is signed, but for the query's order and lacking `=`.
        `payload` is the value of `x-amz-content-sha256`, `separator` stands between the parts of `Authorization`.
        """
        _, date, scope, key, access_key, _ = self._at(now)
        own = {"host": self._host, "x-amz-date": date, "x-amz-content-sha256": payload}
        sent = [(name, own.get(name.lower(), "") if value is None else value, signed) for name, value, signed in fields]
        values = sorted((name.lower(), value) for name, value, signed in sent if signed)
        names = ";".join(name for name, _ in values)
        lines = "".join(f"{name}:{value}\n" for name, value in values)
        path, _, query = target.partition("?")
        canonical = f"{method}\n{path}\n{_canonical_query(query)}\n{lines}\n{names}\n{payload}"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        signature = _hmac(key, f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}").hex()
        parts = (f"Credential={access_key}/{scope}", f"SignedHeaders={names}", f"Signature={signature}")
        authorization = f"AWS4-HMAC-SHA256 {separator.join(parts)}"
        rest = "".join(
            f"{name}: {authorization if name.lower() == 'authorization' else value}\r\n" for name, value, _ in sent
        )
        return Signed(f"{method} {target} HTTP/1.1\r\n{rest}\r\n".encode(), signature, date, scope, key)


def _canonical_query(query: str) -> str:
    return "&".join(sorted(part if "=" in part else f"{part}=" for part in query.split("&"))) if query else ""
