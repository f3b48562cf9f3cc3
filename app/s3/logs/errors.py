"""What PutBucketLogging refuses."""

from __future__ import annotations

from app.s3.s3_error import S3Error


class CrossLocationLoggingProhibitted(S3Error):
    """AWS's own spelling."""

    status = 403
    message = "Cross S3 location logging not allowed."


class InvalidTargetBucketForLogging(S3Error):
    status = 400
    message = (
        "The target bucket for logging does not exist, is not owned by you, or does not have the appropriate grants "
        "for the log-delivery group."
    )
