"""The signature of a request before its secret is known, and its chunks' signatures after."""

from __future__ import annotations

import hmac
from functools import lru_cache
from hashlib import sha256
from typing import Any

from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.wire.request import S3Request

UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
STREAMING_SIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
STREAMING_SIGNED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
STREAMING_UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
STREAMING = frozenset({STREAMING_SIGNED, STREAMING_SIGNED_TRAILER, STREAMING_UNSIGNED_TRAILER})

EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@lru_cache(maxsize=256)
def signing_key(secret: str, day: str, region: str) -> bytes:
    """Return the key of one secret for one day (`YYYYMMDD`) and region."""
    key = b"AWS4" + secret.encode("utf-8")
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode("utf-8"), "sha256")
    return key


@lru_cache(maxsize=256)
def _hmac_states(secret: str, day: str, region: str) -> tuple[Any, Any]:
    """Return both hashes of HMAC-SHA256 (RFC 2104) after the key's block. Copying costs less than a new key."""
    key = signing_key(secret, day, region).ljust(64, b"\0")
    return sha256(key.translate(_INNER)), sha256(key.translate(_OUTER))


_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


def sign(secret: str, day: str, region: str, string_to_sign: str) -> str:
    """Return the signature of a string in hex."""
    first, second = _hmac_states(secret, day, region)
    inner, outer = first.copy(), second.copy()
    inner.update(string_to_sign.encode("utf-8"))
    outer.update(inner.digest())
    signature: str = outer.hexdigest()
    return signature


class ChunkSigner:
    """The chain of signatures of an aws-chunked body.

    Each covers the one before, the first the request's own (`seed`). Source: "Transferring Payload in Multiple
    Chunks", Amazon S3 API Reference.
    """

    __slots__ = ("_day", "_previous", "_region", "_scope", "_secret")

    def __init__(self, secret: str, day: str, region: str, timestamp: str, seed: str) -> None:
        self._secret = secret
        self._day = day
        self._region = region
        self._scope = f"{timestamp}\n{day}/{region}/s3/aws4_request"
        self._previous = seed

    def check_chunk(self, signature: str, sha256: str) -> None:
        """Check the next chunk's signature over the hex digest of its data. Raises SignatureDoesNotMatch."""
        self._check(f"AWS4-HMAC-SHA256-PAYLOAD\n{self._scope}\n{self._previous}\n{EMPTY_SHA256}\n{sha256}", signature)

    def check_trailer(self, signature: str, sha256: str) -> None:
        """Check the signature over the hex digest of the trailing headers. Raises SignatureDoesNotMatch."""
        self._check(f"AWS4-HMAC-SHA256-TRAILER\n{self._scope}\n{self._previous}\n{sha256}", signature)

    def _check(self, string_to_sign: str, signature: str) -> None:
        expected = sign(self._secret, self._day, self._region, string_to_sign)
        if not hmac.compare_digest(expected.encode("ascii"), signature.encode("utf-8", "replace")):
            raise errors.SignatureDoesNotMatch
        self._previous = expected


class RequestSignature:
    """The claimed signature of a request. Nothing in it is trusted before `verify` has returned."""

    __slots__ = ("access_key", "payload", "token", "version", "via")

    access_key: str
    version: str
    """`v4` or `v2`."""
    via: str
    """`header` or `query`."""
    token: str | None
    """The session token, if present."""
    payload: str
    """The body's digest announced by `x-amz-content-sha256` (lower case), or `UNSIGNED-PAYLOAD`."""

    def verify(self, secret: str) -> None:
        """Check the signature. Raises SignatureDoesNotMatch."""
        raise NotImplementedError

    def matches_by_name(self, request: S3Request, secret: str) -> bool:
        """Return whether it fits the query sorted by name only.

        AWS sorts repeated parameters by their values, too; `mc` and its like leave them as they are.
        """
        return False

    def chunk_signer(self, secret: str) -> ChunkSigner:
        """Return the chain of chunk signatures that begins with this request's.

        Raises InvalidRequest where there is none.
        """
        raise errors.InvalidRequest("Signed chunks need AWS4-HMAC-SHA256.")
