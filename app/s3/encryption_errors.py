"""Errors of encryption; see `app.s3.errors`, where they are looked for."""

from __future__ import annotations

from app.s3.s3_error import S3Error


class InvalidEncryptionAlgorithmError(S3Error):
    status = 400
    message = "The Encryption request you specified is not valid. Supported value: AES256."


class KMSDisabledException(S3Error):
    """AWS's code has a dot, as no class can."""

    status = 400

    message = "The request was rejected because the specified KMS key is not enabled."

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, code="KMS.DisabledException")


class KMSNotFoundException(S3Error):
    status = 400
    message = "The request was rejected because the specified entity or resource could not be found."

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, code="KMS.NotFoundException")


class ServerSideEncryptionConfigurationNotFoundError(S3Error):
    status = 404
    message = "The server side encryption configuration was not found."
