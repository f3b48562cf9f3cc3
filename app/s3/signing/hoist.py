"""Headers that the maker of a signed URL put into its query."""

from __future__ import annotations

import re

from app.s3 import errors
from app.s3.checksums import OPTIONS
from app.s3.request import S3Request

# parts of the signature itself; a token stays in, so that it is refused as the header is
_SIGNATURE = frozenset(
    {"x-amz-algorithm", "x-amz-credential", "x-amz-signature", "x-amz-date", "x-amz-signedheaders", "x-amz-expires"}
)
# The JavaScript SDK signs the CRC32 of no bytes into every URL for an upload (since 3.729): who makes the URL does not
# know the body. S3 looks at none of these in a query (https://github.com/localstack/localstack/issues/12169).
_ALGORITHM = "x-amz-sdk-checksum-algorithm"
_CHECKSUM = "x-amz-checksum-"
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]+")
"""What the name of a header can be, in lower case (RFC 9110 §5.6.2)."""


def hoist(request: S3Request) -> None:
    """Make headers of the query's `x-amz-…` parameters, as S3 does in signed URLs (the SDKs put them there).

    The signature covers the query, so they are as good as signed headers; but checksums, which S3 takes from headers
    only, are left where they are. A parameter that would turn the request into another operation is refused:
    NotImplemented. Raises InvalidRequest where a header says something else, and
    InvalidArgument for names and values that no header can have: an object with them could not be answered with.
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
        value = as_header(name, text)
        if name not in request.amazon:
            request.amazon += (name,)
        if headers.setdefault(name, value) != value:
            raise errors.InvalidRequest(f"{name} is given as a header and as a query parameter with another value.")


def as_header(name: str, text: str) -> str:
    """A parameter's text as the value of a header. Raises InvalidArgument for what no header can have."""
    if any(character < " " or character == "\x7f" for character in text):
        raise errors.InvalidArgument(ArgumentName=name)
    # header values are the bytes on the wire read as latin-1
    return text.encode("utf-8", "replace").decode("latin-1")
