"""Errors of any request.

Source of codes, statuses and messages: "Error responses", Amazon S3 API Reference
(https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html).
"""

from __future__ import annotations

from sluice_s3.app.s3.errors.base import S3Error


class BadRequest(S3Error):
    """The request is malformed."""

    status = 400
    message = "The request is not valid."


class IncompleteBody(S3Error):
    """The body is shorter than announced."""

    status = 400
    message = "You did not provide the number of bytes specified by the Content-Length HTTP header."


class InsufficientStorage(S3Error):
    """The backing store is full. Not an AWS code (AWS never fills): 507 in AWS's XML form, as from MinIO."""

    status = 507
    message = "There is not enough space on the backing store."


class InternalError(S3Error):
    """An unexpected error of the gateway."""

    status = 500
    message = "We encountered an internal error. Please try again."


class InvalidArgument(S3Error):
    """A parameter or header has an invalid value."""

    status = 400
    message = "The specified argument was not valid."


class InvalidChunkSizeError(S3Error):
    """A signed chunk is too short."""

    status = 403
    message = "Only the last chunk is allowed to have a size less than 8192 bytes."


class InvalidRequest(S3Error):
    """The request is invalid in another way."""

    status = 400
    message = "The request is not valid."


class InvalidTag(S3Error):
    """A tag is invalid."""

    status = 400
    message = "The tag provided was not a valid tag."


class InvalidURI(S3Error):
    """The request target cannot be parsed."""

    status = 400
    message = "The specified URI couldn't be parsed."


class MalformedTrailerError(S3Error):
    """The trailing headers are malformed."""

    status = 400
    message = "The request contained trailing data that was not well-formed or did not conform to our published schema."


class MalformedXML(S3Error):
    """The document is malformed."""

    status = 400
    message = "The XML you provided was not well-formed or did not validate against our published schema"


class MaxMessageLengthExceeded(S3Error):
    """The document is too long."""

    status = 400
    message = "Your request was too large."


class MethodNotAllowed(S3Error):
    """The resource does not support the method."""

    status = 405
    message = "The specified method is not allowed against this resource."


class MissingContentLength(S3Error):
    """The request has no Content-Length."""

    status = 411
    message = "You must provide the Content-Length HTTP header."


class NoSuchTagSet(S3Error):
    """The bucket has no tags."""

    status = 404
    message = "The TagSet does not exist"


class NotImplemented(S3Error):
    """The requested function is not supported."""

    status = 501
    message = "A header you provided implies functionality that is not implemented"


class RequestHeaderSectionTooLarge(S3Error):
    """The request's headers are too long or too many."""

    status = 400
    message = "Your request header section exceeds the maximum allowed size."


class RequestTimeout(S3Error):
    """The client sends or reads too slowly."""

    status = 400
    message = "Your socket connection to the server was not read from or written to within the timeout period."


class ServiceUnavailable(S3Error):
    """The gateway or a store cannot answer at present."""

    status = 503
    retry_after = 5
    message = "Service is unable to handle request."


class SlowDown(S3Error):
    """The gateway is overloaded."""

    status = 503
    retry_after = 1
    message = "Please reduce your request rate."
