"""Headers in the query of a signed URL."""

from __future__ import annotations

import re

from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.wire.checksums import OPTIONS
from sluice_s3.app.s3.wire.request import S3Request

# parts of the signature itself; a token is not among them, so that it is refused like the header
_SIGNATURE = frozenset(
    {"x-amz-algorithm", "x-amz-credential", "x-amz-signature", "x-amz-date", "x-amz-signedheaders", "x-amz-expires"}
)
# The JavaScript SDK signs the CRC32 of no bytes into every URL for an upload (since 3.729), since it does not know the
# body. S3 ignores these in a query (https://github.com/localstack/localstack/issues/12169).
_ALGORITHM = "x-amz-sdk-checksum-algorithm"
_CHECKSUM = "x-amz-checksum-"
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]+")
"""The form of a header's name in lower case (RFC 9110 §5.6.2)."""


def hoist(request: S3Request) -> None:
    """Add the query's `x-amz-…` parameters to the headers, as S3 does in signed URLs.

    The SDKs put them there. The signature covers the query, so they are as good as signed headers. Checksums stay in
    the query, as S3 takes them from headers only. Raises NotImplemented for a parameter that would make the request
    another operation, InvalidRequest where a header differs, and InvalidArgument for names and values that no header
    can have: a response could not repeat them.
    """
    headers = request.headers
    for parameter, text in request.query.items():
        name = parameter.lower()
        if name[:6] != "x-amz-" or name in _SIGNATURE or name == _ALGORITHM:
            continue
        if name.startswith(_CHECKSUM) and name not in OPTIONS:
            continue
        if name.startswith(("x-amz-copy-source", "x-amz-rename-source", "x-amz-write-offset-bytes")):
            raise errors.NotImplemented(f"{name} is not implemented as a query parameter.")
        if TOKEN.fullmatch(name) is None:
            raise errors.InvalidArgument(ArgumentName=name)
        value = to_header_value(name, text)
        if name not in request.amazon:
            request.amazon += (name,)
        if headers.setdefault(name, value) != value:
            raise errors.InvalidRequest(f"{name} is given as a header and as a query parameter with another value.")


def to_header_value(name: str, text: str) -> str:
    """Return a parameter's text as the value of a header. Raises InvalidArgument for what no header can have."""
    if any(character < " " or character == "\x7f" for character in text):
        raise errors.InvalidArgument(ArgumentName=name)
    # header values are the bytes on the wire decoded as latin-1
    return text.encode("utf-8", "replace").decode("latin-1")
