"""Keys that customers give with each request (SSE-C). They are kept nowhere; what is kept only tells a wrong one.

"Amazon S3 does not store the encryption key that you provide. Instead, it stores a randomly salted Hash-based Message
Authentication Code (HMAC) value" (Using server-side encryption with customer-provided keys, Amazon S3 User Guide).
"""

from __future__ import annotations

import hmac
import os

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.encryption.envelope import CUSTOMER, Envelope, keyed_etag, wrap
from app.errors import DataDamaged

KEY = 32
"""Bytes of a customer's key."""
SALT = 16
_CHECK, _WRAP = b"sluice sse-c check", b"sluice sse-c wrap"


class CustomerKey:
    """One key, of `KEY` bytes."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CustomerKey) and hmac.compare_digest(self._key, other._key)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "CustomerKey()"

    def new_check(self) -> tuple[str, str]:
        """A random salt, and what this key makes of it."""
        salt = os.urandom(SALT)
        return salt.hex(), self._check(salt).hex()

    def fits(self, salt: str, check: str) -> bool:
        """Whether `check` was made of this key."""
        return hmac.compare_digest(self._check(bytes.fromhex(salt)), bytes.fromhex(check))

    def _check(self, salt: bytes) -> bytes:
        return hmac.digest(self._key, _CHECK + salt, "sha256")

    def etag(self, md5: str) -> str:
        """An ETag that tells nothing of the bytes to who has not the key."""
        return keyed_etag(self._key, md5)

    def envelope(self) -> Envelope:
        """A new data key, wrapped by this one mixed with a salt of its own."""
        salt = os.urandom(SALT)
        return wrap(CUSTOMER, salt, self._mixed(salt))

    def unwrapping(self, kind: int, key: bytes) -> AESGCM:
        """See `app.encryption.envelope.Keys`."""
        if kind != CUSTOMER:
            raise DataDamaged(reason="a body is not encrypted as its version says")
        return self._mixed(key)

    def _mixed(self, salt: bytes) -> AESGCM:
        return AESGCM(hmac.digest(self._key, _WRAP + salt, "sha256"))
