"""Checks of a request head that the parser does not make (request smuggling).

llhttp with all leniencies off refuses both framings at once, repeated or malformed lengths, folded lines, bare LF, NUL
and space before a colon. This module refuses the rest.
"""

from __future__ import annotations

from typing import NamedTuple

from sluice_s3.app.s3.errors import BadRequest, InvalidURI, MethodNotAllowed
from sluice_s3.app.s3.wire.request import S3Request

MAX_TARGET = 16 * 1024
"""Bytes of a request target. A key percent-encoded three times fits, or a presigned query with session token."""

METHODS = {name.encode(): name for name in ("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH")}
"""llhttp knows more methods, some of RTSP and ICE; S3 uses none of them."""

MAX_LENGTH_DIGITS = 19
HASH = ord("#")
"""An int: a search for one byte takes a tenth of the time."""
_FRAMING = frozenset(("content-length", "transfer-encoding", "expect"))


class Framing(NamedTuple):
    """How the body is framed, and whether the client waits for 100-continue."""

    length: int | None
    """Bytes of the body, None when it is chunked."""
    expects_continue: bool


NO_BODY = Framing(0, False)


def set_head(request: S3Request, method: bytes, version: str, target: bytes, fields: list[bytes]) -> Framing:
    """Set the head of a new request from its parsed line and fields; return how its body is framed.

    `fields` are names and values, by turns. Raises the S3 error of the first fault found.
    """
    request.set_headers(fields[::2], list(map(bytes.rstrip, fields[1::2])))
    request.raw_path, request.raw_query = split_target(target)
    framing = validate_head(method, version, request)
    request.method = METHODS[method]
    return framing


def split_target(target: bytes) -> tuple[bytes, bytes]:
    """Return path and query exactly as sent. Raises InvalidURI unless the target is in origin form.

    Absolute form is refused although RFC 9112 3.2.2 asks servers to accept it: its authority would compete with Host.
    """
    if target[:1] != b"/" or HASH in target or len(target) > MAX_TARGET or not target.isascii():
        raise InvalidURI()
    path, _, query = target.partition(b"?")
    return path, query


def validate_head(method: bytes, version: str, request: S3Request) -> Framing:
    """Return the framing of a valid head, or raise its S3 error."""
    headers, repeated = request.headers, request.repeated
    if method not in METHODS:
        raise MethodNotAllowed()
    length: int | None = 0
    expects = False
    if not _FRAMING.isdisjoint(headers):
        if (digits := headers.get("content-length")) is not None:
            # the parser accepts any number of leading zeros
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
