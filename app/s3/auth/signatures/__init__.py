"""Signatures of requests: the claimed access key, and its verification. No I/O and no lookups."""

from __future__ import annotations

from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.auth.signatures import sigv4
from sluice_s3.app.s3.auth.signatures.chunked import ChunkedDecoder
from sluice_s3.app.s3.auth.signatures.hoist import hoist
from sluice_s3.app.s3.auth.signatures.request_signature import (
    STREAMING,
    STREAMING_SIGNED,
    STREAMING_SIGNED_TRAILER,
    STREAMING_UNSIGNED_TRAILER,
    UNSIGNED_PAYLOAD,
    ChunkSigner,
    RequestSignature,
)
from sluice_s3.app.s3.auth.signatures.sigv2 import parse_v2_header, parse_v2_query
from sluice_s3.app.s3.wire.request import S3Request

__all__ = [
    "STREAMING",
    "STREAMING_SIGNED",
    "STREAMING_SIGNED_TRAILER",
    "STREAMING_UNSIGNED_TRAILER",
    "UNSIGNED_PAYLOAD",
    "ChunkSigner",
    "ChunkedDecoder",
    "RequestSignature",
    "parse_signature",
]

V4_SCHEME = sigv4.ALGORITHM + " "
_USE_V4 = "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256."
_V4_QUERY = ("X-Amz-Algorithm", "X-Amz-Signature", "X-Amz-Credential")
_V2_QUERY = ("AWSAccessKeyId", "Signature")


def parse_signature(
    request: S3Request, *, now: float, region: str | None, clock_skew: float, sigv2: str
) -> RequestSignature | None:
    """Return the signature of a signed request; None when it is anonymous.

    Makes all checks that need no secret; the caller looks up `access_key` and calls `verify`. `now` and `clock_skew`
    are seconds, `region` None accepts any, and `sigv2` is `off`, `query` or `on`. In a signed URL a parameter `x-amz-…`
    counts as the header of that name and is added to `request.headers`. Raises the S3 error of the first fault found.
    """
    authorization = request.headers.get("authorization", "")
    query = request.query
    v4_query = v2_query = False
    if query:
        v4_query = any(name in query for name in _V4_QUERY)
        v2_query = any(name in query for name in _V2_QUERY)
    if query and (bool(authorization) + v4_query + v2_query) > 1:
        raise errors.InvalidArgument(
            "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string"
            " parameter or the Authorization header should be specified",
            ArgumentName="Authorization",
        )
    signature: RequestSignature
    if authorization:
        if "authorization" in request.repeated:
            raise errors.InvalidArgument(
                "Authorization header is invalid -- one and only one is allowed.", ArgumentName="Authorization"
            )
        if authorization.startswith(V4_SCHEME) or authorization == sigv4.ALGORITHM:
            signature = sigv4.parse_header(request, authorization, now=now, region=region, clock_skew=clock_skew)
        else:
            signature = _parse_other_scheme(request, authorization, now, clock_skew, sigv2)
    elif v4_query:
        signature = sigv4.parse_query(request, now=now, region=region, clock_skew=clock_skew)
        hoist(request)
    elif v2_query:
        if sigv2 == "off":
            raise errors.InvalidRequest(_USE_V4)
        signature = parse_v2_query(request, now=now)
    else:
        return None
    signature.token = request.headers.get("x-amz-security-token")
    return signature


def _parse_other_scheme(
    request: S3Request, authorization: str, now: float, clock_skew: float, sigv2: str
) -> RequestSignature:
    scheme, space, rest = authorization.partition(" ")
    if scheme == "AWS":
        if sigv2 != "on":
            raise errors.InvalidRequest(_USE_V4)
        return parse_v2_header(request, rest, now=now, clock_skew=clock_skew)
    if scheme == "AWS4-ECDSA-P256-SHA256":
        raise errors.NotImplemented("AWS4-ECDSA-P256-SHA256 is not implemented.")
    if not space:
        raise errors.InvalidArgument(
            "Authorization header is invalid -- one and only one ' ' (space) required.", ArgumentName="Authorization"
        )
    raise errors.InvalidArgument("Unsupported Authorization Type", ArgumentName="Authorization")
