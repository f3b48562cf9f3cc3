"""Every error of the S3 protocol that this gateway answers: one class each, named after its code.

Source of codes, statuses and messages: "Error responses", Amazon S3 API Reference
(https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html).
"""

from __future__ import annotations

from app.s3.encryption_errors import InvalidEncryptionAlgorithmError as InvalidEncryptionAlgorithmError
from app.s3.encryption_errors import KMSDisabledException as KMSDisabledException
from app.s3.encryption_errors import KMSNotFoundException as KMSNotFoundException
from app.s3.encryption_errors import (
    ServerSideEncryptionConfigurationNotFoundError as ServerSideEncryptionConfigurationNotFoundError,
)
from app.s3.form_errors import InvalidPolicyDocument as InvalidPolicyDocument
from app.s3.form_errors import InvalidTag as InvalidTag
from app.s3.form_errors import MalformedPOSTRequest as MalformedPOSTRequest
from app.s3.form_errors import MaxPostPreDataLengthExceeded as MaxPostPreDataLengthExceeded
from app.s3.form_errors import QuotaExceeded as QuotaExceeded
from app.s3.lock_errors import InvalidBucketState as InvalidBucketState
from app.s3.lock_errors import InvalidRetentionPeriod as InvalidRetentionPeriod
from app.s3.lock_errors import NoSuchObjectLockConfiguration as NoSuchObjectLockConfiguration
from app.s3.lock_errors import ObjectLockConfigurationNotFoundError as ObjectLockConfigurationNotFoundError
from app.s3.rewrite_errors import IdempotencyParameterMismatch as IdempotencyParameterMismatch
from app.s3.rewrite_errors import InvalidWriteOffset as InvalidWriteOffset
from app.s3.s3_error import S3Error as S3Error


class AccessControlListNotSupported(S3Error):
    status = 400
    message = "The bucket does not allow ACLs"


class AccessDenied(S3Error):
    status = 403
    message = "Access Denied"


class AccessForbidden(S3Error):
    status = 403
    message = "CORSResponse: CORS is not enabled for this bucket."


class AuthorizationHeaderMalformed(S3Error):
    status = 400
    message = "The authorization header that you provided is not valid."


class AuthorizationQueryParametersError(S3Error):
    status = 400
    message = "The authorization query parameters that you provided are not valid."


class BadDigest(S3Error):
    status = 400
    message = "The Content-MD5 or checksum value that you specified did not match what the server received."


class BadRequest(S3Error):
    status = 400
    message = "The request is not valid."


class BucketAlreadyExists(S3Error):
    status = 409
    message = "The requested bucket name is not available. The bucket namespace is shared by all users of the system. Select a different name and try again."


class BucketAlreadyOwnedByYou(S3Error):
    status = 409
    message = "Your previous request to create the named bucket succeeded and you already own it."


class BucketNotEmpty(S3Error):
    status = 409
    message = "The bucket you tried to delete is not empty"


class ConditionalRequestConflict(S3Error):
    status = 409
    message = "The conditional request cannot succeed due to a conflicting operation against this resource."


class EntityTooLarge(S3Error):
    status = 400
    message = "Your proposed upload exceeds the maximum allowed size"


class EntityTooSmall(S3Error):
    status = 400
    message = "Your proposed upload is smaller than the minimum allowed size"


class IllegalLocationConstraintException(S3Error):
    status = 400
    message = (
        "The specified location constraint is incompatible for the region specific endpoint this request was sent to."
    )


class IncompleteBody(S3Error):
    status = 400
    message = "You did not provide the number of bytes specified by the Content-Length HTTP header."


class InternalError(S3Error):
    status = 500
    message = "We encountered an internal error. Please try again."


class InvalidAccessKeyId(S3Error):
    status = 403
    message = "The AWS access key ID that you provided does not exist in our records."


class InvalidArgument(S3Error):
    status = 400
    message = "The specified argument was not valid."


class InvalidBucketAclWithBlockPublicAccessError(S3Error):
    status = 400
    message = "Bucket cannot have public ACLs set with BlockPublicAccess enabled"


class InvalidBucketAclWithObjectOwnership(S3Error):
    status = 400
    message = "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting"


class InvalidBucketName(S3Error):
    status = 400
    message = "The specified bucket is not valid."


class InvalidChunkSizeError(S3Error):
    status = 403
    message = "Only the last chunk is allowed to have a size less than 8192 bytes."


class InvalidDigest(S3Error):
    status = 400
    message = "The Content-MD5 you specified was invalid."


class InvalidLocationConstraint(S3Error):
    status = 400
    message = "The specified location-constraint is not valid"


class InvalidObjectState(S3Error):
    status = 403
    message = "The operation is not valid for the object's storage class"


class InvalidPart(S3Error):
    status = 400
    message = "One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified entity tag may not match the part's entity tag."


class InvalidPartNumber(S3Error):
    status = 416
    message = "The requested partnumber is not satisfiable"


class InvalidPartOrder(S3Error):
    status = 400
    message = "The list of parts was not in ascending order. Parts must be ordered by part number."


class InvalidRange(S3Error):
    status = 416
    message = "The requested range is not satisfiable"


class InvalidRequest(S3Error):
    status = 400
    message = "The request is not valid."


class InvalidStorageClass(S3Error):
    status = 400
    message = "The storage class you specified is not valid"


class InvalidToken(S3Error):
    status = 400
    message = "The provided token is malformed or otherwise not valid."


class InvalidURI(S3Error):
    status = 400
    message = "The specified URI couldn't be parsed."


class KeyTooLongError(S3Error):
    status = 400
    message = "Your key is too long."


class MalformedACLError(S3Error):
    status = 400
    message = "The XML you provided was not well-formed or did not validate against our published schema"


class MalformedPolicy(S3Error):
    status = 400
    message = "This policy contains invalid Json"


class MalformedTrailerError(S3Error):
    status = 400
    message = "The request contained trailing data that was not well-formed or did not conform to our published schema."


class MalformedXML(S3Error):
    status = 400
    message = "The XML you provided was not well-formed or did not validate against our published schema"


class MaxMessageLengthExceeded(S3Error):
    status = 400
    message = "Your request was too large."


class MetadataTooLarge(S3Error):
    status = 400
    message = "Your metadata headers exceed the maximum allowed metadata size."


class MethodNotAllowed(S3Error):
    status = 405
    message = "The specified method is not allowed against this resource."


class MissingContentLength(S3Error):
    status = 411
    message = "You must provide the Content-Length HTTP header."


class MissingRequestBodyError(S3Error):
    status = 400
    message = "Request body is empty."


class MissingSecurityHeader(S3Error):
    status = 400
    message = "Your request was missing a required header"


class NoSuchAccessPointPolicy(S3Error):
    status = 404
    message = "The access point policy does not exist."


class NoSuchBucket(S3Error):
    status = 404
    message = "The specified bucket does not exist"


class NoSuchBucketPolicy(S3Error):
    status = 404
    message = "The bucket policy does not exist"


class NoSuchCORSConfiguration(S3Error):
    status = 404
    message = "The CORS configuration does not exist"


class NoSuchKey(S3Error):
    status = 404
    message = "The specified key does not exist."


class NoSuchLifecycleConfiguration(S3Error):
    status = 404
    message = "The lifecycle configuration does not exist"


class NoSuchPublicAccessBlockConfiguration(S3Error):
    status = 404
    message = "The public access block configuration was not found"


class NoSuchTagSet(S3Error):
    status = 404
    message = "The TagSet does not exist"


class NoSuchUpload(S3Error):
    status = 404
    message = "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed."


class NoSuchVersion(S3Error):
    status = 404
    message = "The specified version does not exist."


class NoSuchWebsiteConfiguration(S3Error):
    status = 404
    message = "The specified bucket does not have a website configuration."


class NotImplemented(S3Error):
    status = 501
    message = "A header you provided implies functionality that is not implemented"


class OwnershipControlsNotFoundError(S3Error):
    status = 404
    message = "The bucket ownership controls were not found"


class PreconditionFailed(S3Error):
    status = 412
    message = "At least one of the pre-conditions you specified did not hold"


class ReplicationConfigurationNotFoundError(S3Error):
    status = 404
    message = "The replication configuration was not found"


class RequestHeaderSectionTooLarge(S3Error):
    status = 400
    message = "Your request header section exceeds the maximum allowed size."


class RequestTimeout(S3Error):
    status = 400
    message = "Your socket connection to the server was not read from or written to within the timeout period."


class RequestTimeTooSkewed(S3Error):
    status = 403
    message = "The difference between the request time and the server's time is too large."


class ServiceUnavailable(S3Error):
    status = 503
    retry_after = 5
    message = "Service is unable to handle request."


class SignatureDoesNotMatch(S3Error):
    status = 403
    message = "The request signature we calculated does not match the signature you provided. Check your key and signing method."


class SlowDown(S3Error):
    status = 503
    retry_after = 1
    message = "Please reduce your request rate."


class TooManyBuckets(S3Error):
    status = 400
    message = "You have attempted to create more buckets than allowed."


class TooManyParts(S3Error):
    status = 400
    message = "You have attempted to upload more parts than allowed."


class UnexpectedContent(S3Error):
    status = 400
    message = "This request does not support content"


class UnresolvableGrantByEmailAddress(S3Error):
    status = 400
    message = "The email address you provided does not match any account on record."


class XAmzContentChecksumMismatch(S3Error):
    status = 400
    message = "The provided 'x-amz-checksum' header does not match what was computed."


class XAmzContentSHA256Mismatch(S3Error):
    status = 400
    message = "The provided 'x-amz-content-sha256' header does not match what was computed."


class IllegalVersioningConfigurationException(S3Error):
    status = 400
    message = "The Versioning element must be specified"


class InsufficientStorage(S3Error):
    """The backing store is full. Not an AWS code (theirs never fills): 507 in AWS's XML form, as MinIO does."""

    status = 507
    message = "There is not enough space on the backing store."
