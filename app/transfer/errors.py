"""Errors of a transfer, and what an endpoint's errors mean for it.

TransferError       the transfer cannot begin or go on; its text is for the operator
├── Interrupted     an endpoint does not answer: the same command goes on from here
NotTaken            one version or setting cannot be copied; the others can
"""

from __future__ import annotations

import functools
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, ParamValidationError

TRANSIENT_CODES = frozenset(
    {"InternalError", "RequestTimeout", "ServiceUnavailable", "SlowDown", "Throttling", "ThrottlingException", "503"}
)
NOT_BUILT = frozenset({"NotImplemented", "MethodNotAllowed", "NotSupported", "XNotImplemented"})
_OF_KEYS = {"ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "RequestTimeTooSkewed", "SignatureDoesNotMatch"}
_FATAL = frozenset({"NoSuchBucket", *_OF_KEYS})


class TransferError(Exception):
    """The transfer cannot begin or go on."""


class Interrupted(TransferError):
    """An endpoint does not answer."""


class NotTaken(Exception):
    """One version or setting cannot be copied, for this reason."""


def code_of(error: ClientError) -> str:
    """Return S3's error code, or the status of an answer without a body."""
    return str(error.response.get("Error", {}).get("Code", ""))


def status_of(error: ClientError) -> int:
    """Return the HTTP status of an error."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def is_not_built(error: ClientError) -> bool:
    """Return whether the endpoint lacks the operation."""
    return code_of(error) in NOT_BUILT or status_of(error) in (405, 501)


def is_transient(error: Exception) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, ClientError):
        return code_of(error) in TRANSIENT_CODES or status_of(error) in (429, 500, 502, 503, 504)
    return not isinstance(error, ParamValidationError)


def is_fatal(error: Exception) -> bool:
    """Return whether every other request fails for the same reason."""
    return isinstance(error, ClientError) and code_of(error) in _FATAL


def describe(error: Exception) -> str:
    """Return an error in one line, without anything secret."""
    if isinstance(error, ClientError):
        message = " ".join(str(error.response.get("Error", {}).get("Message", "")).split())
        return f"{code_of(error)}: {message}"[:300] if message else code_of(error)
    url = getattr(error, "kwargs", {}).get("endpoint_url")
    if url:  # botocore's text has the whole URL, so that no two were alike
        return f"{type(error).__name__}: {urlsplit(url).netloc}"
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def explain(error: Exception, where: str) -> TransferError:
    """Return why an endpoint cannot be used."""
    if isinstance(error, HTTPClientError):
        return Interrupted(f"{where}: {describe(error)}")
    return TransferError(f"{where}: {describe(error)}")


def explained(method: Any) -> Any:
    """Turn botocore's errors of a method of `Bucket` into a TransferError."""

    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return method(self, *arguments, **named)
        except (BotoCoreError, ClientError) as error:
            raise explain(error, self.where) from error

    return call
