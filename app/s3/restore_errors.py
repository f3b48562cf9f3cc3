"""Errors of RestoreObject; see `app.s3.errors`."""

from __future__ import annotations

from app.s3.s3_error import S3Error


class RestoreAlreadyInProgress(S3Error):
    status = 409
    message = "Object restore is already in progress"
