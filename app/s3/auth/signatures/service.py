"""Signature version 4 of requests to IAM and STS.

The body is hashed, without a header that holds its hash. Source: "AWS Signature Version 4 for API requests", IAM User
Guide. Any region is accepted, since these services are global; it is part of the signed string.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from typing import NamedTuple

from sluice_s3.app.s3.auth.signatures.canonical import canonical_request, path_of, query_fields, query_of
from sluice_s3.app.s3.wire.dates import parse_basic
from sluice_s3.app.s3.wire.request import S3Request

_HEADER = re.compile(
    r"AWS4-HMAC-SHA256 +Credential=([!-+\-.0-~]{1,128})/([0-9]{8})/([\w.-]{0,64})/([a-z0-9-]{1,32})/aws4_request, *"
    r"SignedHeaders=([^, ]{1,2048}), *Signature=([0-9a-f]{64})"
)


class Incomplete(ValueError):
    """It is no signature of version 4. Its text is the message for the client."""


class ClockSkew(Exception):
    """The signing time is too far off."""


class ServiceSignature(NamedTuple):
    """The claimed signature of a request; nothing in it is trusted before `matches` returns True."""

    access_key: str
    day: str
    region: str
    service: str
    timestamp: str
    signed_headers: str
    signature: str

    def matches(self, request: S3Request, body: bytes, secret: str) -> bool:
        """Return whether a secret signed this request with this body."""
        payload = sha256(body).hexdigest()
        signature = request.headers.get("x-amz-content-sha256", payload)
        query = query_of(query_fields(request.raw_query)) if request.raw_query else ""
        canonical = canonical_request(request, path_of(request.raw_path), query, self.signed_headers, payload)
        scope = f"{self.day}/{self.region}/{self.service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{self.timestamp}\n{scope}\n{sha256(canonical).hexdigest()}"
        key = b"AWS4" + secret.encode("utf-8")
        for part in (self.day, self.region, self.service, "aws4_request", text):
            key = hmac.digest(key, part.encode("utf-8"), "sha256")
        return hmac.compare_digest(key.hex(), self.signature) and hmac.compare_digest(
            signature.lower().encode(), payload.encode()
        )


def parse_service(request: S3Request, *, now: float, clock_skew: float) -> ServiceSignature | None:
    """Return the signature of a request; None when it is unsigned. `now` and `clock_skew` are seconds.

    Raises Incomplete, ClockSkew.
    """
    value = request.headers.get("authorization")
    if value is None:
        return None
    match = _HEADER.fullmatch(value)
    if match is None or "authorization" in request.repeated:
        raise Incomplete("Authorization header requires 'Credential', 'SignedHeaders' and 'Signature' of version 4.")
    access_key, day, region, service, signed, signature = match.groups()
    timestamp = request.headers.get("x-amz-date", "")
    seconds = parse_basic(timestamp)
    if seconds is None or timestamp[:8] != day:
        raise Incomplete("X-Amz-Date must be in the ISO8601 Long Format, and of the day of the Credential.")
    names = set(signed.split(";"))
    if "host" not in names or not names.issuperset(request.amazon):
        raise Incomplete("'Host' and every header 'X-Amz-…' must be a 'SignedHeader' in the AWS Authorization.")
    if abs(now - seconds) > clock_skew:
        raise ClockSkew
    return ServiceSignature(access_key, day, region, service, timestamp, signed, signature)
