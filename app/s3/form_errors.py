"""Errors of uploads by HTML forms, of tags and quotas; see `app.s3.errors`, where they are looked for."""

from __future__ import annotations

from app.s3.s3_error import S3Error


class InvalidPolicyDocument(S3Error):
    status = 400
    message = "The content of the form does not meet the conditions specified in the policy document."


class InvalidTag(S3Error):
    status = 400
    message = "The tag provided was not a valid tag."


class MalformedPOSTRequest(S3Error):
    status = 400
    message = "The body of your POST request is not well-formed multipart/form-data."


class MaxPostPreDataLengthExceeded(S3Error):
    status = 400
    message = "Your POST request fields preceding the upload file were too large."


class QuotaExceeded(S3Error):
    """The bucket holds what it may. Not an AWS code (theirs have no quotas): 403 as Ceph's gateway answers."""

    status = 403
    message = "The quota set for the bucket is exceeded."
