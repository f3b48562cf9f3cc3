"""Errors of objects, versions, parts and uploads.

Source of codes, statuses and messages: "Error responses", Amazon S3 API Reference
(https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html).
"""

from __future__ import annotations

from sluice_s3.app.s3.errors.base import S3Error


class BadDigest(S3Error):
    """The body does not match its checksum."""

    status = 400
    message = "The Content-MD5 or checksum value that you specified did not match what the server received."


class ConditionalRequestConflict(S3Error):
    """Another request changed the object during a conditional one."""

    status = 409
    message = "The conditional request cannot succeed due to a conflicting operation against this resource."


class EntityTooLarge(S3Error):
    """The object is larger than allowed."""

    status = 400
    message = "Your proposed upload exceeds the maximum allowed size"


class EntityTooSmall(S3Error):
    """The object or part is smaller than allowed."""

    status = 400
    message = "Your proposed upload is smaller than the minimum allowed size"


class IdempotencyParameterMismatch(S3Error):
    """A client token was reused with other parameters."""

    status = 400
    message = "Parameters on this idempotent request are inconsistent with parameters used in previous request(s)."


class InvalidDigest(S3Error):
    """The Content-MD5 header is malformed."""

    status = 400
    message = "The Content-MD5 you specified was invalid."


class InvalidEncryptionAlgorithmError(S3Error):
    """The algorithm of a customer's key is not AES256."""

    status = 400
    message = "The Encryption request you specified is not valid. Supported value: AES256."


class InvalidObjectState(S3Error):
    """The object's storage class does not allow the operation."""

    status = 403
    message = "The operation is not valid for the object's storage class"


class InvalidPart(S3Error):
    """A part is missing or has another ETag."""

    status = 400
    message = "One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified entity tag may not match the part's entity tag."


class InvalidPartNumber(S3Error):
    """The object has no part of that number."""

    status = 416
    message = "The requested partnumber is not satisfiable"


class InvalidPartOrder(S3Error):
    """The parts are not in ascending order."""

    status = 400
    message = "The list of parts was not in ascending order. Parts must be ordered by part number."


class InvalidRange(S3Error):
    """The range is beyond the end of the object."""

    status = 416
    message = "The requested range is not satisfiable"


class InvalidStorageClass(S3Error):
    """The storage class is unknown."""

    status = 400
    message = "The storage class you specified is not valid"


class InvalidWriteOffset(S3Error):
    """The write offset is not the size of the object."""

    status = 400
    message = "The write offset value that you specified does not match the current object size."


class KMSDisabledException(S3Error):
    """The KMS key is disabled. AWS's code has a dot, which no class name can have."""

    status = 400
    code = "KMS.DisabledException"
    message = "The request was rejected because the specified KMS key is not enabled."


class KMSNotFoundException(S3Error):
    """The KMS key does not exist."""

    status = 400
    code = "KMS.NotFoundException"
    message = "The request was rejected because the specified entity or resource could not be found."


class KeyTooLongError(S3Error):
    """The object's key is too long."""

    status = 400
    message = "Your key is too long."


class MalformedPOSTRequest(S3Error):
    """The upload form is malformed."""

    status = 400
    message = "The body of your POST request is not well-formed multipart/form-data."


class MaxPostPreDataLengthExceeded(S3Error):
    """The fields before the form's file are too long."""

    status = 400
    message = "Your POST request fields preceding the upload file were too large."


class MetadataTooLarge(S3Error):
    """The user metadata is too long."""

    status = 400
    message = "Your metadata headers exceed the maximum allowed metadata size."


class NoSuchKey(S3Error):
    """The object does not exist."""

    status = 404
    message = "The specified key does not exist."


class NoSuchObjectLockConfiguration(S3Error):
    """The object has no retention or legal hold."""

    status = 404
    message = "The specified object does not have a ObjectLock configuration"


class NoSuchUpload(S3Error):
    """The multipart upload does not exist."""

    status = 404
    message = "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed."


class NoSuchVersion(S3Error):
    """The version does not exist."""

    status = 404
    message = "The specified version does not exist."


class PreconditionFailed(S3Error):
    """A condition of the request does not hold."""

    status = 412
    message = "At least one of the pre-conditions you specified did not hold"


class RestoreAlreadyInProgress(S3Error):
    """A restore of the object is in progress."""

    status = 409
    message = "Object restore is already in progress"


class TooManyParts(S3Error):
    """The upload has as many parts as it may."""

    status = 400
    message = "You have attempted to upload more parts than allowed."
