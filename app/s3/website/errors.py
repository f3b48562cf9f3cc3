"""What is answered where there is no website."""

from __future__ import annotations

from app.s3.s3_error import S3Error


class NoSuchWebsiteConfiguration(S3Error):
    status = 404
    message = "The specified bucket does not have a website configuration"
