"""Errors of object lock; see `app.s3.errors`, where they are looked for."""

from __future__ import annotations

from app.s3.s3_error import S3Error


class InvalidBucketState(S3Error):
    status = 409
    message = "The request is not valid for the current state of the bucket."


class InvalidRetentionPeriod(S3Error):
    status = 400
    message = "Default retention period must be a positive integer value."


class NoSuchObjectLockConfiguration(S3Error):
    status = 404
    message = "The specified object does not have a ObjectLock configuration"


class ObjectLockConfigurationNotFoundError(S3Error):
    status = 404
    message = "Object Lock configuration does not exist for this bucket"
