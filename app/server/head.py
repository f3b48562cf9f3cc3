"""What the parser lets through and we do not: the request head, checked once (reliability: request smuggling).

llhttp with all leniencies off refuses both framings at once, repeated or malformed lengths, folded lines, bare LF, NUL
and space before a colon. This module refuses the rest.
"""

from __future__ import annotations

from typing import NamedTuple

from app.s3.errors import BadRequest, InvalidURI, MethodNotAllowed
from app.s3.request import S3Request

MAX_TARGET = 16 * 1024
"""Bytes of a request target: a key of 1024 bytes percent-encoded thrice, and a presigned query with session token."""

METHODS = {name.encode(): name for name in ("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH")}
"""llhttp knows more, some of them of RTSP and ICE; none is S3's."""

MAX_LENGTH_DIGITS = 19
HASH = ord("#")
"""A byte is looked for in a tenth of the time that bytes are."""
_FRAMING = frozenset(("content-length", "transfer-encoding", "expect"))


class Framing(NamedTuple):
    """How the body comes, and what the client asked of the connection."""

    length: int | None
    """Bytes of the body, None when it is chunked."""
    expects_continue: bool


NO_BODY = Framing(0, False)


def check_target(target: bytes) -> tuple[bytes, bytes]:
    """Path and query, byte for byte as sent. Raises InvalidURI unless the target is in origin form.

    Absolute form is refused though RFC 9112 3.2.2 asks servers to take it: its authority would compete with Host.
    """
    if target[:1] != b"/" or HASH in target or len(target) > MAX_TARGET or not target.isascii():
        raise InvalidURI()
    path, _, query = target.partition(b"?")
    return path, query


def check_head(method: bytes, version: str, request: S3Request) -> Framing:
    """Raises the S3 error that a head deserves which must not reach the application."""
    headers, repeated = request.headers, request.repeated
    if method not in METHODS:
        raise MethodNotAllowed()
    length: int | None = 0
    expects = False
    if not _FRAMING.isdisjoint(headers):
        if (digits := headers.get("content-length")) is not None:
            # leading zeros, which the parser lets through without end
            if len(digits) > MAX_LENGTH_DIGITS or not digits.isdigit():
                raise BadRequest()
            length = int(digits)
        if (coding := headers.get("transfer-encoding")) is not None:
            if coding.lower() != "chunked" or version != "1.1":
                raise BadRequest("This transfer encoding is not supported.")
            length = None
        expects = headers.get("expect", "").lower() == "100-continue"
    if ("host" not in headers or "host" in repeated) and ("host" in headers or version != "1.0"):
        raise BadRequest("A request must have one Host header.")
    if version != "1.1" and version != "1.0":
        raise BadRequest("The HTTP version is not supported.")
    return Framing(length, expects and version == "1.1" and length != 0) if length != 0 else NO_BODY
