"""The encryption scheme of an object, as JSON among its row's headers.

Its name is not one that a header can have.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import orjson

NAME = "sse"
SEALED = f'"{NAME}":['
"""Text in a row's headers when the object is encrypted: JSON escapes quotes, so that no value contains it."""

S3, KMS, CUSTOMER = "AES256", "aws:kms", "C"
"""Methods: a key of the gateway, a named key of the ring, a key of the customer."""


class Scheme(NamedTuple):
    """The encryption scheme of an object.

    The keys themselves are in its blobs: see `app.encryption.envelope`.
    """

    method: str
    key: str = ""
    """Of KMS: the ARN of the key. Of CUSTOMER: salt and check of the key, with a colon between."""
    bucket_key: bool = False
    """Of KMS: whether the request wants a bucket key."""

    @property
    def is_opaque(self) -> bool:
        """Whether the ETag is not the MD5 of the bytes ("Object", Amazon S3 API Reference)."""
        return self.method != S3


def to_json(scheme: Scheme) -> list[object]:
    """Return the stored form of a scheme."""
    return list(scheme)


def from_json(found: Sequence[object]) -> Scheme:
    """Return the scheme of a stored form."""
    method, key, bucket_key = found
    return Scheme(str(method), str(key), bool(bucket_key))


def scheme_of(headers: str) -> Scheme | None:
    """Return the scheme in a row's headers; None when the object is not encrypted."""
    return parse_scheme(headers) if SEALED in headers else None


@lru_cache(maxsize=1024)
def parse_scheme(headers: str) -> Scheme:
    """Return the scheme in the headers of an encrypted object."""
    return from_json(orjson.loads(headers)[NAME])
