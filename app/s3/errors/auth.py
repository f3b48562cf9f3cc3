"""Errors of signatures, keys and permissions.

Source of codes, statuses and messages: "Error responses", Amazon S3 API Reference
(https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html).
"""

from __future__ import annotations

from sluice_s3.app.s3.errors.base import S3Error


class AccessDenied(S3Error):
    """The caller lacks the permission."""

    status = 403
    message = "Access Denied"


class AuthorizationHeaderMalformed(S3Error):
    """The Authorization header is malformed."""

    status = 400
    message = "The authorization header that you provided is not valid."


class AuthorizationQueryParametersError(S3Error):
    """The query parameters of a presigned URL are malformed."""

    status = 400
    message = "The authorization query parameters that you provided are not valid."


class ExpiredToken(S3Error):
    """The session token has expired."""

    status = 400
    message = "The provided token has expired."


class InvalidAccessKeyId(S3Error):
    """The access key does not exist or is disabled."""

    status = 403
    message = "The AWS access key ID that you provided does not exist in our records."


class InvalidPolicyDocument(S3Error):
    """The form does not meet its policy."""

    status = 400
    message = "The content of the form does not meet the conditions specified in the policy document."


class InvalidToken(S3Error):
    """The session token is not the one of its key."""

    status = 400
    message = "The provided token is malformed or otherwise not valid."


class RequestTimeTooSkewed(S3Error):
    """The signing time is too far off."""

    status = 403
    message = "The difference between the request time and the server's time is too large."


class SignatureDoesNotMatch(S3Error):
    """The signature does not match the secret key."""

    status = 403
    message = "The request signature we calculated does not match the signature you provided. Check your key and signing method."


class XAmzContentSHA256Mismatch(S3Error):
    """The body does not match its announced SHA-256."""

    status = 400
    message = "The provided 'x-amz-content-sha256' header does not match what was computed."
