"""Headers that ask for something this gateway has not built: refused with 501, never ignored (law 6)."""

from __future__ import annotations

from app.s3 import tags
from app.s3.errors import NotImplemented
from app.s3.request import S3Request

PREFIXES = (
    "x-amz-server-side-encryption",
    "x-amz-copy-source-server-side-encryption",
)
NAMES = frozenset(
    {
        "x-amz-write-offset-bytes",
        "x-amz-create-session-mode",
        "x-amz-bucket-namespace",
        "x-amz-rename-source",
    }
)
USUAL = frozenset({"x-amz-date", "x-amz-content-sha256", "x-amz-checksum-mode", "x-amz-decoded-content-length"})
"""Looked at elsewhere: most requests have no others."""
TAKE_ACLS = frozenset(
    {"PutObject", "PostObject", "CopyObject", "CreateMultipartUpload", "CreateBucket", "PutBucketAcl", "PutObjectAcl"}
)
"""Operations that can say something of an ACL in their headers."""
TAKE_LOCKS = tags.OPERATIONS
"""The same of an object's lock."""


def refuse_unbuilt_headers(request: S3Request) -> None:
    """Raises NotImplemented for a header of something not built."""
    if USUAL.issuperset(request.amazon):
        return
    for name in request.amazon:
        if name.startswith(PREFIXES) or name in NAMES:
            raise NotImplemented(Header=name)
        if (name == "x-amz-acl" or name.startswith("x-amz-grant-")) and request.operation not in TAKE_ACLS:
            raise NotImplemented(Header=name)
        if name == tags.HEADER and request.operation not in tags.OPERATIONS:
            raise NotImplemented(Header=name)
        if name.startswith("x-amz-object-lock-") and request.operation not in TAKE_LOCKS:
            raise NotImplemented(Header=name)
        if name == "x-amz-bucket-object-lock-enabled" and request.operation != "CreateBucket":
            raise NotImplemented(Header=name)
        if name == "x-amz-object-ownership" and request.operation != "CreateBucket":
            raise NotImplemented(Header=name)
