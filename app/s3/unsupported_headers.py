"""Headers of unsupported functions: refused with 501, never ignored (law 6)."""

from __future__ import annotations

from sluice_s3.app.s3.errors import InvalidArgument, NotImplemented
from sluice_s3.app.s3.object_lock import xml as lock_xml
from sluice_s3.app.s3.tagging import tags
from sluice_s3.app.s3.wire.conditions import DATED_OPERATIONS, LAST_MODIFIED
from sluice_s3.app.s3.wire.request import S3Request

ENCRYPTION = "x-amz-server-side-encryption"
COPY_SOURCE_HEADERS = "x-amz-copy-source-server-side-encryption"
ACCEPTS_ENCRYPTION = frozenset(
    [
        "PutObject",
        "PostObject",
        "CopyObject",
        "CreateMultipartUpload",
        "UploadPart",
        "UploadPartCopy",
        "CompleteMultipartUpload",
        "GetObject",
        "HeadObject",
        "GetObjectAttributes",
        "ListParts",
    ]
)
"""Operations with encryption headers; `encryption` defines which headers each takes."""
LISTS = frozenset({"ListObjects", "ListObjectsV2"})
"""Operations that s3fs-fuse sends a customer's key to: they read no object, and need none."""
CREATES_OBJECT = frozenset({"PutObject", "PostObject", "CopyObject", "CreateMultipartUpload"})
"""Operations that create an object, and so select its encryption."""
SSE_ALGORITHMS = frozenset(ENCRYPTION + name for name in ("", "-aws-kms-key-id", "-context", "-bucket-key-enabled"))
SSE_C_HEADERS = ("-customer-algorithm", "-customer-key", "-customer-key-md5")
SUPPORTED_SSE = SSE_ALGORITHMS | {
    prefix + name for prefix in (ENCRYPTION, COPY_SOURCE_HEADERS) for name in SSE_C_HEADERS
}
ACCEPTS_SOURCE = frozenset({"CopyObject", "UploadPartCopy"})
NAMES = frozenset(
    {
        "x-amz-create-session-mode",
        "x-amz-bucket-namespace",
        "x-amz-if-match-initiated-time",
    }
)
COMMON_HEADERS = frozenset(
    [
        "x-amz-content-sha256",
        "x-amz-date",
        "x-amz-decoded-content-length",
        "x-amz-sdk-checksum-algorithm",
        "x-amz-security-token",
        "x-amz-storage-class",
        "x-amz-trailer",
        *(f"x-amz-checksum-{name}" for name in ("algorithm", "crc32", "crc32c", "crc64nvme", "mode", "sha256", "type")),
    ]
)
"""Headers checked elsewhere, those that SDKs send: most requests have no others."""
ACCEPTS_ACLS = frozenset(
    {"PutObject", "PostObject", "CopyObject", "CreateMultipartUpload", "CreateBucket", "PutBucketAcl", "PutObjectAcl"}
)
"""Operations that take an ACL in their headers."""
ACCEPTS_LOCKS = tags.OPERATIONS
"""Operations that take an object's lock in their headers."""


def reject_unsupported_headers(request: S3Request) -> None:
    """Raise NotImplemented for an unsupported header.

    Raises InvalidArgument for one that sets the encryption of an object where the operation makes none.
    """
    if COMMON_HEADERS.issuperset(request.amazon):
        return
    for name in request.amazon:
        if name.startswith(ENCRYPTION):
            _take_encryption(request, name)
        if name in NAMES or (name == LAST_MODIFIED and request.operation not in DATED_OPERATIONS):
            raise NotImplemented(Header=name)
        if name.startswith(COPY_SOURCE_HEADERS) and (
            request.operation not in ACCEPTS_SOURCE or name not in SUPPORTED_SSE
        ):
            raise NotImplemented(Header=name)
        if name.startswith("x-amz-rename-source") and request.operation != "RenameObject":
            raise NotImplemented(Header=name)
        if name == "x-amz-write-offset-bytes":
            if request.operation != "PutObject":
                raise NotImplemented(Header=name)
            request.appends = True
        if (name == "x-amz-acl" or name.startswith("x-amz-grant-")) and request.operation not in ACCEPTS_ACLS:
            raise NotImplemented(Header=name)
        if name == tags.HEADER and request.operation not in tags.OPERATIONS:
            raise NotImplemented(Header=name)
        of_lock = name.startswith("x-amz-object-lock-")
        if of_lock and (request.operation not in ACCEPTS_LOCKS or name not in lock_xml.HEADERS):
            raise NotImplemented(Header=name)
        if name == "x-amz-bucket-object-lock-enabled" and request.operation != "CreateBucket":
            raise NotImplemented(Header=name)
        if name == "x-amz-object-ownership" and request.operation != "CreateBucket":
            raise NotImplemented(Header=name)


def _take_encryption(request: S3Request, name: str) -> None:
    """Note that the request has a header of encryption, if its operation takes this one."""
    lists = request.operation in LISTS
    if name not in SUPPORTED_SSE or not (lists or request.operation in ACCEPTS_ENCRYPTION):
        raise NotImplemented(Header=name)
    if name in SSE_ALGORITHMS and request.operation not in CREATES_OBJECT:
        raise sse_not_applicable(request, name)
    request.sse = not lists


def sse_not_applicable(request: S3Request, name: str) -> InvalidArgument:
    """Return the error for encryption headers on an operation that does not create the object."""
    return InvalidArgument(
        f"{name} header is not supported for this operation.",
        ArgumentName=name,
        ArgumentValue=request.headers[name][:64],
    )
