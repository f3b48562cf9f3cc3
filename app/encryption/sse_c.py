"""Keys that customers send with each request (SSE-C).

They are never stored; a stored check only detects a wrong key. "Amazon S3 does not store the encryption key that you
provide. Instead, it stores a randomly salted Hash-based Message Authentication Code (HMAC) value" (Using server-side
encryption with customer-provided keys, Amazon S3 User Guide).
"""

from __future__ import annotations

import hmac
import os

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sluice_s3.app.encryption.envelope import CUSTOMER, Envelope, keyed_etag, wrap
from sluice_s3.app.errors import DataDamaged

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
        """Return a random salt, and this key's check for it."""
        salt = os.urandom(SALT)
        return salt.hex(), self._check(salt).hex()

    def fits(self, salt: str, check: str) -> bool:
        """Return whether `check` belongs to this key."""
        return hmac.compare_digest(self._check(bytes.fromhex(salt)), bytes.fromhex(check))

    def _check(self, salt: bytes) -> bytes:
        return hmac.digest(self._key, _CHECK + salt, "sha256")

    def etag(self, etag: str) -> str:
        """Return an ETag that reveals nothing of the bytes without the key."""
        return keyed_etag(self._key, etag)

    def envelope(self) -> Envelope:
        """Return a new data key, wrapped by this key with a new salt."""
        salt = os.urandom(SALT)
        return wrap(CUSTOMER, salt, self._mixed(salt))

    def unwrapping(self, kind: int, key: bytes) -> AESGCM:
        """See `app.encryption.envelope.Keys`."""
        if kind != CUSTOMER:
            raise DataDamaged(reason="a body is not encrypted as its version says")
        return self._mixed(key)

    def _mixed(self, salt: bytes) -> AESGCM:
        return AESGCM(hmac.digest(self._key, _WRAP + salt, "sha256"))
