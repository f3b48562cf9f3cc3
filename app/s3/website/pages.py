"""What a website answers that is no object: redirects, and errors as a page that people read.

"Website endpoints", Amazon S3 User Guide.
"""

from __future__ import annotations

from html import escape
from http import HTTPStatus

from app.s3.request import S3Request
from app.s3.response import Headers, Response
from app.s3.s3_error import S3Error

HTML = b"text/html; charset=utf-8"


def redirect(location: str, status: int = 301) -> Response:
    """Go there. What no header can hold is left out of the location."""
    text = location.translate({ord(sign): None for sign in "\r\n\0"})
    return Response(status, [(b"location", text.encode("utf-8"))])


def error_headers(error: S3Error) -> Headers:
    """An error as the answers of websites tell it in their headers."""
    found: Headers = [(b"x-amz-error-code", error.code.encode()), (b"x-amz-error-message", _line(error.text))]
    found += [(b"x-amz-error-detail-" + name.encode(), _line(value)) for name, value in error.extra.items()]
    return found


def _line(text: str) -> bytes:
    return "".join(sign for sign in text if sign.isprintable()).encode("utf-8")


def error_page(request: S3Request, error: S3Error, of_document: S3Error | None = None) -> Response:
    """The page that tells an error; `of_document` is why the website's own could not be shown."""
    title = f"{error.status} {HTTPStatus(error.status).phrase}"
    ids = [("RequestId", request.request_id), ("HostId", request.request_id)]
    said = _list([("Code", error.code), ("Message", error.text), *error.extra.items(), *ids])
    if of_document is not None:
        said += "<h3>An Error Occurred While Attempting to Retrieve a Custom Error Document</h3>\n"
        said += _list([("Code", of_document.code), ("Message", of_document.text), *of_document.extra.items()])
    page = (
        f"<html>\n<head><title>{title}</title></head>\n<body>\n<h1>{title}</h1>\n{said}<hr/>\n</body>\n</html>\n"
    ).encode("utf-8", "replace")
    if request.method == "HEAD":
        return Response(error.status, [(b"content-type", HTML), *error_headers(error)], b"", len(page))
    return Response(error.status, [(b"content-type", HTML), *error_headers(error)], page)


def _list(entries: list[tuple[str, str]]) -> str:
    return f"<ul>\n{''.join(f'<li>{escape(name)}: {escape(value)}</li>{chr(10)}' for name, value in entries)}</ul>\n"
