"""Errors of RenameObject and of appending; see `app.s3.errors`, where they are looked for."""

from __future__ import annotations

from app.s3.s3_error import S3Error


class IdempotencyParameterMismatch(S3Error):
    status = 400
    message = "Parameters on this idempotent request are inconsistent with parameters used in previous request(s)."


class InvalidWriteOffset(S3Error):
    status = 400
    message = "The write offset value that you specified does not match the current object size."
