"""Headers that ask for something this gateway has not built: refused with 501, never ignored (law 6)."""

from __future__ import annotations

from app.s3 import lock_documents, tags
from app.s3.errors import InvalidArgument, NotImplemented
from app.s3.request import S3Request

ENCRYPTION = "x-amz-server-side-encryption"
OF_SOURCE = "x-amz-copy-source-server-side-encryption"
TAKE_ENCRYPTION = frozenset(
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
"""Operations that can be told how an object is or is to be encrypted; which headers each takes, `encryption` says."""
OF_NEW = frozenset({"PutObject", "PostObject", "CopyObject", "CreateMultipartUpload"})
"""Those that begin an object, and so choose how it is encrypted."""
CHOICES = frozenset(ENCRYPTION + name for name in ("", "-aws-kms-key-id", "-context", "-bucket-key-enabled"))
OF_CUSTOMER = ("-customer-algorithm", "-customer-key", "-customer-key-md5")
BUILT = CHOICES | {prefix + name for prefix in (ENCRYPTION, OF_SOURCE) for name in OF_CUSTOMER}
TAKE_SOURCE = frozenset({"CopyObject", "UploadPartCopy"})
NAMES = frozenset(
    {
        "x-amz-create-session-mode",
        "x-amz-bucket-namespace",
        "x-amz-if-match-initiated-time",
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
    """Raises NotImplemented for a header of something not built, InvalidArgument for one that chooses the encryption of
    an object that is there."""
    if USUAL.issuperset(request.amazon):
        return
    for name in request.amazon:
        if name.startswith(ENCRYPTION):
            if request.operation not in TAKE_ENCRYPTION or name not in BUILT:
                raise NotImplemented(Header=name)
            if name in CHOICES and request.operation not in OF_NEW:
                raise no_choice(request, name)
            request.sse = True
        if name in NAMES:
            raise NotImplemented(Header=name)
        if name.startswith(OF_SOURCE) and (request.operation not in TAKE_SOURCE or name not in BUILT):
            raise NotImplemented(Header=name)
        if name.startswith("x-amz-rename-source") and request.operation != "RenameObject":
            raise NotImplemented(Header=name)
        if name == "x-amz-write-offset-bytes":
            if request.operation != "PutObject":
                raise NotImplemented(Header=name)
            request.appends = True
        if (name == "x-amz-acl" or name.startswith("x-amz-grant-")) and request.operation not in TAKE_ACLS:
            raise NotImplemented(Header=name)
        if name == tags.HEADER and request.operation not in tags.OPERATIONS:
            raise NotImplemented(Header=name)
        of_lock = name.startswith("x-amz-object-lock-")
        if of_lock and (request.operation not in TAKE_LOCKS or name not in lock_documents.HEADERS):
            raise NotImplemented(Header=name)
        if name == "x-amz-bucket-object-lock-enabled" and request.operation != "CreateBucket":
            raise NotImplemented(Header=name)
        if name == "x-amz-object-ownership" and request.operation != "CreateBucket":
            raise NotImplemented(Header=name)


def no_choice(request: S3Request, name: str) -> InvalidArgument:
    """How an object is encrypted is chosen when it is begun, and not again."""
    return InvalidArgument(
        f"{name} header is not supported for this operation.",
        ArgumentName=name,
        ArgumentValue=request.headers[name][:64],
    )
