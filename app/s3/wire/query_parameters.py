"""Query parameters of several operations."""

from __future__ import annotations

import base64
import binascii

from sluice_s3.app.s3.errors import BadRequest, InvalidArgument
from sluice_s3.app.s3.wire.request import S3Request


def parse_integer(request: S3Request, name: str, default: int, least: int, most: int, *, cap: bool = False) -> int:
    """Return an integer of the query; above `most` it is refused, or lowered with `cap`. Raises InvalidArgument."""
    text = request.query.get(name)
    if text is None or text == "":
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10 or int(text) > 2**31 - 1:
        raise InvalidArgument(
            f"Provided {name} not an integer or within integer range", ArgumentName=name, ArgumentValue=text
        )
    value = int(text)
    if value > most and cap:
        return most
    if not least <= value <= most:
        raise InvalidArgument(
            f"Argument {name} must be an integer between {least} and {most}", ArgumentName=name, ArgumentValue=text
        )
    return value


def wants_url_encoding(request: S3Request) -> bool:
    """Return whether keys in the response must be percent-encoded. Raises InvalidArgument for another encoding."""
    value = request.query.get("encoding-type")
    if value is None or value == "":
        return False
    if value != "url":
        raise InvalidArgument(
            "Invalid Encoding Method specified in Request", ArgumentName="encoding-type", ArgumentValue=value
        )
    return True


def encode_continuation_token(last: str) -> str:
    """Return an opaque continuation token for the last entry."""
    return base64.urlsafe_b64encode(b"1" + last.encode("utf-8", "surrogatepass")).decode()


def decode_continuation_token(token: str) -> str:
    """Return the last entry of a continuation token. Raises InvalidArgument for an invalid one."""
    try:
        data = base64.b64decode(token, altchars=b"-_", validate=True)
        if data[:1] == b"1":
            return data[1:].decode("utf-8")
    except (binascii.Error, ValueError):
        pass
    raise InvalidArgument("The continuation token provided is incorrect", ArgumentName="continuation-token")


def parse_content_length(request: S3Request) -> None:
    """Set the announced length of the body. Raises BadRequest."""
    length = request.headers.get("content-length")
    if length is not None:
        if not (length.isascii() and length.isdigit()) or len(length) > 19:
            raise BadRequest()
        request.content_length = int(length)
