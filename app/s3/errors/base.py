"""The base of all errors of the S3 protocol."""

from __future__ import annotations


class S3Error(Exception):
    """Base of all S3 errors. `extra` becomes child elements of the response's `<Error>`, `headers` its headers."""

    status = 400
    message = ""
    code = ""
    """The code as AWS names it; empty in a class of that name."""
    retry_after = 0
    """Seconds of the response's `Retry-After` (RFC 9110 §10.2.3); 0 for none."""
    document: bytes | None = None
    """The body of the response, where it is not S3's."""

    def __init__(
        self,
        message: str | None = None,
        *,
        headers: dict[str, str] | None = None,
        code: str | None = None,
        **extra: object,
    ) -> None:
        super().__init__(message or self.message)
        self.text = message or self.message
        self.code = code or self.code or type(self).__name__
        self.extra = {name: str(value) for name, value in extra.items()}
        self.headers = headers or ({"Retry-After": str(self.retry_after)} if self.retry_after else {})
