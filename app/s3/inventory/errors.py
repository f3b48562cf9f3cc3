"""What inventory configurations are refused with."""

from __future__ import annotations

from app.s3.s3_error import S3Error


class IdMismatch(S3Error):
    status = 400
    message = "Document ID does not match the specified configuration ID."


class InvalidConfigurationId(S3Error):
    status = 400
    message = "The specified configuration ID is not valid."


class InvalidS3DestinationBucket(S3Error):
    status = 400
    message = "The destination bucket is not valid."


class NoSuchConfiguration(S3Error):
    status = 404
    message = "The specified configuration does not exist."


class TooManyConfigurations(S3Error):
    status = 400
    message = "You are attempting to create a new configuration but have already reached the 1,000-configuration limit."
