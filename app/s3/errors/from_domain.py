"""The S3 error of any exception; maps each domain error in one place."""

from __future__ import annotations

from sluice_s3.app import errors as domain
from sluice_s3.app.s3.errors import (
    AccessDenied,
    BucketAlreadyExists,
    BucketAlreadyOwnedByYou,
    BucketNotEmpty,
    ConditionalRequestConflict,
    EntityTooSmall,
    IdempotencyParameterMismatch,
    InsufficientStorage,
    InternalError,
    InvalidBucketState,
    InvalidPart,
    InvalidPartOrder,
    InvalidRequest,
    KMSDisabledException,
    NoSuchBucket,
    NoSuchKey,
    NoSuchUpload,
    NoSuchVersion,
    NotImplemented,
    PreconditionFailed,
    QuotaExceeded,
    S3Error,
    ServiceUnavailable,
    SlowDown,
    TooManyBuckets,
)

_OF_DOMAIN: dict[type[domain.DomainError], type[S3Error]] = {
    domain.NoSuchBucket: NoSuchBucket,
    domain.BucketAlreadyExists: BucketAlreadyExists,
    domain.BucketAlreadyOwnedByYou: BucketAlreadyOwnedByYou,
    domain.BucketNotEmpty: BucketNotEmpty,
    domain.TooManyBuckets: TooManyBuckets,
    domain.QuotaExceeded: QuotaExceeded,
    domain.NoSuchKey: NoSuchKey,
    domain.NoSuchVersion: NoSuchVersion,
    domain.PreconditionFailed: PreconditionFailed,
    domain.ConditionalRequestConflict: ConditionalRequestConflict,
    domain.ObjectLocked: AccessDenied,
    domain.InvalidBucketState: InvalidBucketState,
    domain.TokenReused: IdempotencyParameterMismatch,
    domain.NoSuchUpload: NoSuchUpload,
    domain.InvalidPart: InvalidPart,
    domain.InvalidPartOrder: InvalidPartOrder,
    domain.EntityTooSmall: EntityTooSmall,
    domain.CustomerKeyNeeded: InvalidRequest,
    domain.CustomerKeyWrong: AccessDenied,
    domain.KeyDisabled: KMSDisabledException,
    domain.KeyUnavailable: ServiceUnavailable,
    domain.NoKeyRing: NotImplemented,
    domain.Overloaded: SlowDown,
    domain.StoreFull: InsufficientStorage,
    domain.DataDamaged: ServiceUnavailable,
    domain.IndexBehind: ServiceUnavailable,
    domain.IndexForeign: ServiceUnavailable,
    domain.StoreUnavailable: ServiceUnavailable,
    domain.CommitUnknown: ServiceUnavailable,
    domain.WriterDead: ServiceUnavailable,
}

_EXTRA_NAMES = {"bucket": "BucketName", "key": "Key", "upload_id": "UploadId", "version_id": "VersionId",
                "condition": "Condition", "part_number": "PartNumber", "etag": "ETag",
                "size": "ProposedSize", "minimum": "MinSizeAllowed"}  # fmt: skip

MESSAGES: dict[type[domain.DomainError], str] = {
    domain.ObjectLocked: "Access Denied because object protected by object lock.",
    domain.CustomerKeyNeeded: "The object was stored using a form of Server Side Encryption. The correct parameters "
    "must be provided to retrieve the object.",
    domain.CustomerKeyWrong: "Requests specifying Server Side Encryption with Customer provided keys must provide the "
    "correct secret key.",
    domain.NoKeyRing: "Encryption with keys of the server is not set up here: it has no master key.",
}
"""Messages where AWS's differ from the error's usual one."""
NO_THREAD = "can't start new thread"


def to_s3_error(error: Exception) -> S3Error:
    """Return the S3 error of an exception.

    An S3 error is its own, a domain error has one in the table, what the system lacks memory or threads for is
    SlowDown, and all others are InternalError. That does not log: a caller that must tell of a fault of the server does
    so for what is neither an S3 error nor a domain error.
    """
    if isinstance(error, S3Error):
        return error
    if not isinstance(error, domain.DomainError):
        return SlowDown() if _is_shortage(error) else InternalError()
    answer = _OF_DOMAIN.get(type(error), InternalError)
    if answer.status >= 500:
        return answer(MESSAGES.get(type(error)))
    s3_error = answer(MESSAGES.get(type(error)))
    s3_error.extra = {_EXTRA_NAMES[name]: str(value) for name, value in error.detail.items() if name in _EXTRA_NAMES}
    return s3_error


def _is_shortage(error: Exception) -> bool:
    """Tell whether the system gave no memory or no thread; Python has no class for the latter."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and str(error) == NO_THREAD)
