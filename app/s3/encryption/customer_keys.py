"""Customers' keys in requests (SSE-C): three headers.

They are for a new object, a stored one or a copy's source. "Using server-side encryption with customer-provided keys",
Amazon S3 User Guide. The order of the checks and their messages are AWS's.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import TYPE_CHECKING

from sluice_s3.app.encryption.sse_c import KEY, CustomerKey
from sluice_s3.app.s3.errors import InvalidArgument, InvalidEncryptionAlgorithmError, InvalidRequest
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Headers

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

SSE = "x-amz-server-side-encryption"
OBJECT_HEADERS = SSE + "-customer-"
SOURCE_HEADERS = "x-amz-copy-source-server-side-encryption-customer-"
ALGORITHM, SECRET, MD5 = "algorithm", "key", "key-md5"
AES256 = "AES256"
_WITH = "Requests specifying Server Side Encryption with Customer provided keys must "


def parse_customer_key(services: Services, request: S3Request, prefix: str = OBJECT_HEADERS) -> CustomerKey | None:
    """Return the key in a request's headers; None without one.

    Raises InvalidArgument, InvalidEncryptionAlgorithmError, InvalidRequest.
    """
    algorithm, secret, md5 = (request.headers.get(prefix + name) for name in (ALGORITHM, SECRET, MD5))
    if algorithm is None and secret is None and md5 is None:
        return None
    if request.scheme != "https" and not services.settings.customer_keys_over_http:
        raise InvalidRequest(_WITH + "be made over a secure connection.")
    if algorithm is None:
        raise _wrong(_WITH + "provide a valid encryption algorithm.")
    if algorithm != AES256:
        raise InvalidEncryptionAlgorithmError(ArgumentName=SSE, ArgumentValue=algorithm[:64])
    if secret is None:
        raise _wrong(_WITH + "provide an appropriate secret key.")
    if md5 is None:
        raise _wrong(_WITH + "provide the client calculated MD5 of the secret key.")
    try:
        key = base64.b64decode(secret, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong("The secret key was invalid for the specified algorithm.") from None
    found = base64.b64encode(hashlib.md5(key, usedforsecurity=False).digest()).decode()
    if not hmac.compare_digest(found, md5):
        raise _wrong("The calculated MD5 hash of the key did not match the hash that was provided.")
    if len(key) != KEY:
        raise _wrong("The secret key was invalid for the specified algorithm.")
    return CustomerKey(key)


def _wrong(message: str) -> InvalidArgument:
    return InvalidArgument(message, ArgumentName=SSE, ArgumentValue="null")


def echo_headers(request: S3Request) -> Headers:
    """Return the response headers that repeat algorithm and MD5 of the request's key."""
    return [
        (name.encode(), request.headers[name].encode("latin-1"))
        for name in (OBJECT_HEADERS + ALGORITHM, OBJECT_HEADERS + MD5)
    ]
