"""Query parameters that several operations take."""

from __future__ import annotations

import base64
import binascii

from app.s3.errors import BadRequest, InvalidArgument
from app.s3.request import S3Request


def integer(request: S3Request, name: str, default: int, least: int, most: int, *, cap: bool = False) -> int:
    """A whole number from the query; over `most` it is refused, or lowered with `cap`. Raises InvalidArgument."""
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


def url_encoding(request: S3Request) -> bool:
    """Whether keys are to be percent-encoded in the answer. Raises InvalidArgument for another encoding."""
    value = request.query.get("encoding-type")
    if value is None or value == "":
        return False
    if value != "url":
        raise InvalidArgument(
            "Invalid Encoding Method specified in Request", ArgumentName="encoding-type", ArgumentValue=value
        )
    return True


def write_token(last: str) -> str:
    """An opaque continuation token for what came last."""
    return base64.urlsafe_b64encode(b"1" + last.encode("utf-8", "surrogatepass")).decode()


def read_token(token: str) -> str:
    """What came last before a continuation token. Raises InvalidArgument for one that is not ours."""
    try:
        data = base64.b64decode(token, altchars=b"-_", validate=True)
        if data[:1] == b"1":
            return data[1:].decode("utf-8")
    except (binascii.Error, ValueError):
        pass
    raise InvalidArgument("The continuation token provided is incorrect", ArgumentName="continuation-token")


def read_length(request: S3Request) -> None:
    """Note how long the body says it is. Raises BadRequest."""
    length = request.headers.get("content-length")
    if length is not None:
        if not (length.isascii() and length.isdigit()) or len(length) > 19:
            raise BadRequest()
        request.content_length = int(length)
