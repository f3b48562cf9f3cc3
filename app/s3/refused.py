"""Headers that ask for something this gateway has not built: refused with 501, never ignored (law 6)."""

from __future__ import annotations

from app.s3.errors import InvalidArgument, NotImplemented
from app.s3.request import S3Request

PREFIXES = (
    "x-amz-server-side-encryption",
    "x-amz-copy-source-server-side-encryption",
    "x-amz-object-lock-",
    "x-amz-grant-",
)
NAMES = frozenset(
    {
        "x-amz-tagging",
        "x-amz-write-offset-bytes",
        "x-amz-create-session-mode",
        "x-amz-bucket-namespace",
        "x-amz-rename-source",
    }
)
USUAL = frozenset({"x-amz-date", "x-amz-content-sha256", "x-amz-checksum-mode", "x-amz-decoded-content-length"})
"""Looked at elsewhere: most requests have no others."""
CANNED_ACLS = frozenset(
    [
        "private",
        "public-read",
        "public-read-write",
        "authenticated-read",
        "aws-exec-read",
        "bucket-owner-read",
        "bucket-owner-full-control",
        "log-delivery-write",
    ]
)
HELD_ANYWAY = frozenset({"private", "bucket-owner-full-control"})
"""Canned ACLs that only say what holds in every bucket here: the owner has everything and nobody else anything."""


def refuse_unbuilt_headers(request: S3Request) -> None:
    """Raises NotImplemented for a header of something not built, InvalidArgument for an ACL that is none."""
    if USUAL.issuperset(request.amazon):
        return
    for name in request.amazon:
        value = request.headers[name]
        if name.startswith(PREFIXES) or name in NAMES:
            raise NotImplemented(Header=name)
        if name == "x-amz-acl" and value not in HELD_ANYWAY:
            if value not in CANNED_ACLS:
                raise InvalidArgument(ArgumentName="x-amz-acl", ArgumentValue=value)
            raise NotImplemented(Header=name)
        if name == "x-amz-bucket-object-lock-enabled" and value.lower() != "false":
            raise NotImplemented(Header=name)
        if name == "x-amz-object-ownership" and value != "BucketOwnerEnforced":
            raise NotImplemented(Header=name)
