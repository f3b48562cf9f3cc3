"""The header before a blob's chunks: wrapped data key and id of the wrapping key.

A blob thus opens with the right key and nothing else. It can be shared, moved between packs and stores, and found by a
rebuild, all without knowing that it is encrypted.

    magic 4 | format 1 | kind 1 | chunk size 1 | 0 | key 16 | nonce 12 | wrapped data key 32 + 16

The fields before the nonce are authenticated with the data key.
"""

from __future__ import annotations

import hmac
import os
import struct
from typing import NamedTuple, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sluice_s3.app.errors import DataDamaged

MAGIC, FORMAT, CHUNK_BITS = b"SlSE", 1, 16
HEAD = struct.Struct(">4sBBBx16s")
NONCE, DATA_KEY, WRAPPED = 12, 32, 48
HEADER = HEAD.size + NONCE + WRAPPED
"""Bytes before the first chunk."""
RING, CUSTOMER = 1, 2
"""Kinds of wrapping keys: one of the key ring, by its id; a customer's, by the salt it was mixed with."""


class Keys(Protocol):
    """Source of unwrapping keys."""

    def unwrapping(self, kind: int, key: bytes) -> AESGCM:
        """Return the key that unwraps. Raises DomainError when there is none."""
        ...


class Envelope(NamedTuple):
    """A new data key."""

    header: bytes
    cipher: AESGCM


def wrap(kind: int, key: bytes, cipher: AESGCM) -> Envelope:
    """Return a new data key, wrapped by the key of that id."""
    head = HEAD.pack(MAGIC, FORMAT, kind, CHUNK_BITS, key)
    random = os.urandom(NONCE + DATA_KEY)
    nonce, data_key = random[:NONCE], random[NONCE:]
    return Envelope(head + nonce + cipher.encrypt(nonce, data_key, head), AESGCM(data_key))


def unwrap(header: bytes, keys: Keys) -> AESGCM:
    """Return the data key of a header.

    Raises DataDamaged when it is no header or was changed, and what `keys` raises.
    """
    head = header[: HEAD.size]
    if len(header) != HEADER:
        raise DataDamaged(reason="an encrypted body ends in its header")
    magic, form, kind, bits, key = HEAD.unpack(head)
    if (magic, form, bits) != (MAGIC, FORMAT, CHUNK_BITS):
        raise DataDamaged(reason="an encrypted body has no header")
    nonce, wrapped = header[HEAD.size : HEAD.size + NONCE], header[HEAD.size + NONCE :]
    try:
        return AESGCM(keys.unwrapping(kind, key).decrypt(nonce, wrapped, head))
    except InvalidTag:
        raise DataDamaged(reason="the data key of an encrypted body does not open") from None


def keyed_etag(secret: bytes, etag: str) -> str:
    """Return a stand-in of equal form for an ETag, a hash in hex that must stay secret."""
    digits, *kind = etag.split("-")
    return "-".join([hmac.digest(secret, b"sluice etag" + etag.encode(), "sha256").hex()[: len(digits)], *kind])
