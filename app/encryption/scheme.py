"""How an object is encrypted, as its row says among its headers (JSON, under a name that no header has)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import orjson

NAME = "sse"
SEALED = f'"{NAME}":['
"""In a row's headers when the object is encrypted. Within a text JSON escapes quotes, and what tags and headers give
for a name is a text: so a name with a list stands nowhere else."""

S3, KMS, CUSTOMER = "AES256", "aws:kms", "C"
"""Methods: a key of the gateway's, a key of the ring that was named, a key of the customer's."""


class Scheme(NamedTuple):
    """How an object is encrypted. The keys themselves are in its blobs: see `app.encryption.envelope`."""

    method: str
    key: str = ""
    """Of KMS: the ARN of the key. Of CUSTOMER: salt and check of the key, with a colon between."""
    bucket_key: bool = False
    """Of KMS: a bucket key was asked for."""

    @property
    def is_opaque(self) -> bool:
        """The ETag is not the MD5 of the bytes ("Object", Amazon S3 API Reference)."""
        return self.method != S3


def to_json(scheme: Scheme) -> list[object]:
    """A scheme as a row keeps it."""
    return list(scheme)


def from_json(found: Sequence[object]) -> Scheme:
    """The scheme that a row keeps."""
    method, key, bucket_key = found
    return Scheme(str(method), str(key), bool(bucket_key))


def scheme_of(headers: str) -> Scheme | None:
    """How an object is encrypted by the headers of its row, None when it is not."""
    return parsed_scheme(headers) if SEALED in headers else None


@lru_cache(maxsize=1024)
def parsed_scheme(headers: str) -> Scheme:
    """The same of the headers of an object that is encrypted."""
    return from_json(orjson.loads(headers)[NAME])
