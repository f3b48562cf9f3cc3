"""All errors of the S3 protocol: one class each, named after its code.

Metrics count the codes of this package (`app.server.shared_memory.counters`).
"""

from __future__ import annotations

from sluice_s3.app.s3.errors.auth import AccessDenied as AccessDenied
from sluice_s3.app.s3.errors.auth import AuthorizationHeaderMalformed as AuthorizationHeaderMalformed
from sluice_s3.app.s3.errors.auth import AuthorizationQueryParametersError as AuthorizationQueryParametersError
from sluice_s3.app.s3.errors.auth import ExpiredToken as ExpiredToken
from sluice_s3.app.s3.errors.auth import InvalidAccessKeyId as InvalidAccessKeyId
from sluice_s3.app.s3.errors.auth import InvalidPolicyDocument as InvalidPolicyDocument
from sluice_s3.app.s3.errors.auth import InvalidToken as InvalidToken
from sluice_s3.app.s3.errors.auth import RequestTimeTooSkewed as RequestTimeTooSkewed
from sluice_s3.app.s3.errors.auth import SignatureDoesNotMatch as SignatureDoesNotMatch
from sluice_s3.app.s3.errors.auth import XAmzContentSHA256Mismatch as XAmzContentSHA256Mismatch
from sluice_s3.app.s3.errors.base import S3Error as S3Error
from sluice_s3.app.s3.errors.buckets import AccessControlListNotSupported as AccessControlListNotSupported
from sluice_s3.app.s3.errors.buckets import AccessForbidden as AccessForbidden
from sluice_s3.app.s3.errors.buckets import BucketAlreadyExists as BucketAlreadyExists
from sluice_s3.app.s3.errors.buckets import BucketAlreadyOwnedByYou as BucketAlreadyOwnedByYou
from sluice_s3.app.s3.errors.buckets import BucketNotEmpty as BucketNotEmpty
from sluice_s3.app.s3.errors.buckets import CrossLocationLoggingProhibitted as CrossLocationLoggingProhibitted
from sluice_s3.app.s3.errors.buckets import IdMismatch as IdMismatch
from sluice_s3.app.s3.errors.buckets import (
    IllegalVersioningConfigurationException as IllegalVersioningConfigurationException,
)
from sluice_s3.app.s3.errors.buckets import (
    InvalidBucketAclWithBlockPublicAccessError as InvalidBucketAclWithBlockPublicAccessError,
)
from sluice_s3.app.s3.errors.buckets import InvalidBucketAclWithObjectOwnership as InvalidBucketAclWithObjectOwnership
from sluice_s3.app.s3.errors.buckets import InvalidBucketName as InvalidBucketName
from sluice_s3.app.s3.errors.buckets import InvalidBucketState as InvalidBucketState
from sluice_s3.app.s3.errors.buckets import InvalidConfigurationId as InvalidConfigurationId
from sluice_s3.app.s3.errors.buckets import InvalidLocationConstraint as InvalidLocationConstraint
from sluice_s3.app.s3.errors.buckets import InvalidRetentionPeriod as InvalidRetentionPeriod
from sluice_s3.app.s3.errors.buckets import InvalidS3DestinationBucket as InvalidS3DestinationBucket
from sluice_s3.app.s3.errors.buckets import InvalidTargetBucketForLogging as InvalidTargetBucketForLogging
from sluice_s3.app.s3.errors.buckets import MalformedACLError as MalformedACLError
from sluice_s3.app.s3.errors.buckets import MalformedPolicy as MalformedPolicy
from sluice_s3.app.s3.errors.buckets import NoSuchBucket as NoSuchBucket
from sluice_s3.app.s3.errors.buckets import NoSuchBucketPolicy as NoSuchBucketPolicy
from sluice_s3.app.s3.errors.buckets import NoSuchConfiguration as NoSuchConfiguration
from sluice_s3.app.s3.errors.buckets import NoSuchCORSConfiguration as NoSuchCORSConfiguration
from sluice_s3.app.s3.errors.buckets import NoSuchLifecycleConfiguration as NoSuchLifecycleConfiguration
from sluice_s3.app.s3.errors.buckets import NoSuchPublicAccessBlockConfiguration as NoSuchPublicAccessBlockConfiguration
from sluice_s3.app.s3.errors.buckets import NoSuchWebsiteConfiguration as NoSuchWebsiteConfiguration
from sluice_s3.app.s3.errors.buckets import ObjectLockConfigurationNotFoundError as ObjectLockConfigurationNotFoundError
from sluice_s3.app.s3.errors.buckets import OwnershipControlsNotFoundError as OwnershipControlsNotFoundError
from sluice_s3.app.s3.errors.buckets import QuotaExceeded as QuotaExceeded
from sluice_s3.app.s3.errors.buckets import (
    ServerSideEncryptionConfigurationNotFoundError as ServerSideEncryptionConfigurationNotFoundError,
)
from sluice_s3.app.s3.errors.buckets import TooManyBuckets as TooManyBuckets
from sluice_s3.app.s3.errors.buckets import TooManyConfigurations as TooManyConfigurations
from sluice_s3.app.s3.errors.buckets import UnresolvableGrantByEmailAddress as UnresolvableGrantByEmailAddress
from sluice_s3.app.s3.errors.common import BadRequest as BadRequest
from sluice_s3.app.s3.errors.common import IncompleteBody as IncompleteBody
from sluice_s3.app.s3.errors.common import InsufficientStorage as InsufficientStorage
from sluice_s3.app.s3.errors.common import InternalError as InternalError
from sluice_s3.app.s3.errors.common import InvalidArgument as InvalidArgument
from sluice_s3.app.s3.errors.common import InvalidChunkSizeError as InvalidChunkSizeError
from sluice_s3.app.s3.errors.common import InvalidRequest as InvalidRequest
from sluice_s3.app.s3.errors.common import InvalidTag as InvalidTag
from sluice_s3.app.s3.errors.common import InvalidURI as InvalidURI
from sluice_s3.app.s3.errors.common import MalformedTrailerError as MalformedTrailerError
from sluice_s3.app.s3.errors.common import MalformedXML as MalformedXML
from sluice_s3.app.s3.errors.common import MaxMessageLengthExceeded as MaxMessageLengthExceeded
from sluice_s3.app.s3.errors.common import MethodNotAllowed as MethodNotAllowed
from sluice_s3.app.s3.errors.common import MissingContentLength as MissingContentLength
from sluice_s3.app.s3.errors.common import NoSuchTagSet as NoSuchTagSet
from sluice_s3.app.s3.errors.common import NotImplemented as NotImplemented
from sluice_s3.app.s3.errors.common import RequestHeaderSectionTooLarge as RequestHeaderSectionTooLarge
from sluice_s3.app.s3.errors.common import RequestTimeout as RequestTimeout
from sluice_s3.app.s3.errors.common import ServiceUnavailable as ServiceUnavailable
from sluice_s3.app.s3.errors.common import SlowDown as SlowDown
from sluice_s3.app.s3.errors.objects import BadDigest as BadDigest
from sluice_s3.app.s3.errors.objects import ConditionalRequestConflict as ConditionalRequestConflict
from sluice_s3.app.s3.errors.objects import EntityTooLarge as EntityTooLarge
from sluice_s3.app.s3.errors.objects import EntityTooSmall as EntityTooSmall
from sluice_s3.app.s3.errors.objects import IdempotencyParameterMismatch as IdempotencyParameterMismatch
from sluice_s3.app.s3.errors.objects import InvalidDigest as InvalidDigest
from sluice_s3.app.s3.errors.objects import InvalidEncryptionAlgorithmError as InvalidEncryptionAlgorithmError
from sluice_s3.app.s3.errors.objects import InvalidObjectState as InvalidObjectState
from sluice_s3.app.s3.errors.objects import InvalidPart as InvalidPart
from sluice_s3.app.s3.errors.objects import InvalidPartNumber as InvalidPartNumber
from sluice_s3.app.s3.errors.objects import InvalidPartOrder as InvalidPartOrder
from sluice_s3.app.s3.errors.objects import InvalidRange as InvalidRange
from sluice_s3.app.s3.errors.objects import InvalidStorageClass as InvalidStorageClass
from sluice_s3.app.s3.errors.objects import InvalidWriteOffset as InvalidWriteOffset
from sluice_s3.app.s3.errors.objects import KeyTooLongError as KeyTooLongError
from sluice_s3.app.s3.errors.objects import KMSDisabledException as KMSDisabledException
from sluice_s3.app.s3.errors.objects import KMSNotFoundException as KMSNotFoundException
from sluice_s3.app.s3.errors.objects import MalformedPOSTRequest as MalformedPOSTRequest
from sluice_s3.app.s3.errors.objects import MaxPostPreDataLengthExceeded as MaxPostPreDataLengthExceeded
from sluice_s3.app.s3.errors.objects import MetadataTooLarge as MetadataTooLarge
from sluice_s3.app.s3.errors.objects import NoSuchKey as NoSuchKey
from sluice_s3.app.s3.errors.objects import NoSuchObjectLockConfiguration as NoSuchObjectLockConfiguration
from sluice_s3.app.s3.errors.objects import NoSuchUpload as NoSuchUpload
from sluice_s3.app.s3.errors.objects import NoSuchVersion as NoSuchVersion
from sluice_s3.app.s3.errors.objects import PreconditionFailed as PreconditionFailed
from sluice_s3.app.s3.errors.objects import RestoreAlreadyInProgress as RestoreAlreadyInProgress
from sluice_s3.app.s3.errors.objects import TooManyParts as TooManyParts
