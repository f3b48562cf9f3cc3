"""Errors of MinIO's admin API. Its clients read S3's document, and some of the codes.

Codes and messages: "apiErrCodes" of MinIO's server, as its clients compare them.
"""

from __future__ import annotations

from sluice_s3.app.access.iam.errors import IamError, InternalFailure, ServiceUnavailable, Throttling
from sluice_s3.app.s3.errors import InternalError, NotImplemented, S3Error, SlowDown
from sluice_s3.app.s3.errors import ServiceUnavailable as Unavailable

GUIDE = "docs/guides/mc.md"
_CODES = {
    "The user": "XMinioAdminNoSuchUser",
    "The group": "XMinioAdminNoSuchGroup",
    "The policy": "XMinioAdminNoSuchPolicy",
    "Policy ": "XMinioAdminNoSuchPolicy",
    "The Access Key": "XMinioInvalidIAMCredentials",
}
"""Codes of what does not exist, by the start of IAM's message."""
_OF_SERVER = {Throttling: SlowDown, ServiceUnavailable: Unavailable, InternalFailure: InternalError}


class AdminError(S3Error):
    """An error with a code and a status of its own."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message, code=code)
        self.status = status


def not_here(what: str) -> NotImplemented:
    """Return the error for what MinIO's admin API has and this one has not."""
    return NotImplemented(f"this is not MinIO's admin API: {what} is not implemented (see {GUIDE})")


def no_such(kind: str, name: str) -> AdminError:
    """Return the error for a user, group, policy or key that does not exist."""
    article = "The Access Key" if kind == "key" else f"The {kind}"
    return AdminError(404, _CODES[article], f"The specified {kind} does not exist: {name[:128]}")


def from_iam(error: IamError) -> S3Error:
    """Return the error for one of IAM."""
    of_server = _OF_SERVER.get(type(error))
    if of_server is not None:
        return of_server()
    code = error.code
    if code == "NoSuchEntity":
        code = next((found for start, found in _CODES.items() if error.text.startswith(start)), code)
    return AdminError(error.status, code, error.text)
