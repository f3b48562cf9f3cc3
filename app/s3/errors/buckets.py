"""Errors of buckets and their configurations.

Source of codes, statuses and messages: "Error responses", Amazon S3 API Reference
(https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html).
"""

from __future__ import annotations

from sluice_s3.app.s3.errors.base import S3Error


class AccessControlListNotSupported(S3Error):
    """The bucket has no ACLs."""

    status = 400
    message = "The bucket does not allow ACLs"


class AccessForbidden(S3Error):
    """No cross-origin rule allows the request."""

    status = 403
    message = "CORSResponse: CORS is not enabled for this bucket."


class BucketAlreadyExists(S3Error):
    """Another account owns a bucket of that name."""

    status = 409
    message = "The requested bucket name is not available. The bucket namespace is shared by all users of the system. Select a different name and try again."


class BucketAlreadyOwnedByYou(S3Error):
    """The caller owns a bucket of that name."""

    status = 409
    message = "Your previous request to create the named bucket succeeded and you already own it."


class BucketNotEmpty(S3Error):
    """A bucket with objects cannot be deleted."""

    status = 409
    message = "The bucket you tried to delete is not empty"


class CrossLocationLoggingProhibitted(S3Error):
    """The log bucket is in another region. AWS's own spelling."""

    status = 403
    message = "Cross S3 location logging not allowed."


class IdMismatch(S3Error):
    """The id of the document is not the one of the request."""

    status = 400
    message = "Document ID does not match the specified configuration ID."


class IllegalVersioningConfigurationException(S3Error):
    """The versioning document has no valid status."""

    status = 400
    message = "The Versioning element must be specified"


class InvalidBucketAclWithBlockPublicAccessError(S3Error):
    """A public ACL is blocked."""

    status = 400
    message = "Bucket cannot have public ACLs set with BlockPublicAccess enabled"


class InvalidBucketAclWithObjectOwnership(S3Error):
    """An ACL is not possible with BucketOwnerEnforced."""

    status = 400
    message = "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting"


class InvalidBucketName(S3Error):
    """The bucket's name breaks the naming rules."""

    status = 400
    message = "The specified bucket is not valid."


class InvalidBucketState(S3Error):
    """The state of the bucket does not allow the request."""

    status = 409
    message = "The request is not valid for the current state of the bucket."


class InvalidConfigurationId(S3Error):
    """The configuration's id is invalid."""

    status = 400
    message = "The specified configuration ID is not valid."


class InvalidLocationConstraint(S3Error):
    """The region or store is unknown."""

    status = 400
    message = "The specified location-constraint is not valid"


class InvalidRetentionPeriod(S3Error):
    """The default retention is out of bounds."""

    status = 400
    message = "Default retention period must be a positive integer value."


class InvalidS3DestinationBucket(S3Error):
    """The destination bucket of an inventory is invalid."""

    status = 400
    message = "The destination bucket is not valid."


class InvalidTargetBucketForLogging(S3Error):
    """The log bucket does not exist or refuses delivery."""

    status = 400
    message = (
        "The target bucket for logging does not exist, is not owned by you, or does not have the appropriate grants "
        "for the log-delivery group."
    )


class MalformedACLError(S3Error):
    """The ACL document is malformed."""

    status = 400
    message = "The XML you provided was not well-formed or did not validate against our published schema"


class MalformedPolicy(S3Error):
    """The bucket policy is malformed."""

    status = 400
    message = "This policy contains invalid Json"


class NoSuchBucket(S3Error):
    """The bucket does not exist."""

    status = 404
    message = "The specified bucket does not exist"


class NoSuchBucketPolicy(S3Error):
    """The bucket has no policy."""

    status = 404
    message = "The bucket policy does not exist"


class NoSuchCORSConfiguration(S3Error):
    """The bucket has no cross-origin rules."""

    status = 404
    message = "The CORS configuration does not exist"


class NoSuchConfiguration(S3Error):
    """The bucket has no configuration of that id."""

    status = 404
    message = "The specified configuration does not exist."


class NoSuchLifecycleConfiguration(S3Error):
    """The bucket has no lifecycle rules."""

    status = 404
    message = "The lifecycle configuration does not exist"


class NoSuchPublicAccessBlockConfiguration(S3Error):
    """The bucket has no public access block."""

    status = 404
    message = "The public access block configuration was not found"


class NoSuchWebsiteConfiguration(S3Error):
    """The bucket has no website configuration."""

    status = 404
    message = "The specified bucket does not have a website configuration"


class ObjectLockConfigurationNotFoundError(S3Error):
    """The bucket has no Object Lock configuration."""

    status = 404
    message = "Object Lock configuration does not exist for this bucket"


class OwnershipControlsNotFoundError(S3Error):
    """The bucket has no ownership controls."""

    status = 404
    message = "The bucket ownership controls were not found"


class QuotaExceeded(S3Error):
    """The bucket's quota is used up. Not an AWS code (AWS has no quotas): 403 as from Ceph's gateway."""

    status = 403
    message = "The quota set for the bucket is exceeded."


class ServerSideEncryptionConfigurationNotFoundError(S3Error):
    """The bucket has no default encryption."""

    status = 404
    message = "The server side encryption configuration was not found."


class TooManyBuckets(S3Error):
    """The account has as many buckets as it may."""

    status = 400
    message = "You have attempted to create more buckets than allowed."


class TooManyConfigurations(S3Error):
    """The bucket has as many configurations as it may."""

    status = 400
    message = "You are attempting to create a new configuration but have already reached the 1,000-configuration limit."


class UnresolvableGrantByEmailAddress(S3Error):
    """No account has the email address of a grant."""

    status = 400
    message = "The email address you provided does not match any account on record."
