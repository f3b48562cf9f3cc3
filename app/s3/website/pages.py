"""Responses of websites other than objects: redirects, and errors as HTML pages.

"Website endpoints", Amazon S3 User Guide.
"""

from __future__ import annotations

from html import escape
from http import HTTPStatus
from urllib.parse import quote

from sluice_s3.app.s3.errors import S3Error
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Headers, Response

HTML = b"text/html; charset=utf-8"
CONTROL_CHARACTERS = bytes([*range(32), 127])


def redirect(location: bytes, status: int = 301) -> Response:
    r"""Redirect to a place: to another host only if it names a scheme.

    Browsers treat `//HOST` and `/\HOST` as another host, and first remove control characters.
    """
    location = location.translate(None, CONTROL_CHARACTERS)
    rest = location.lstrip(b"/\\")
    slashes = location[: len(location) - len(rest)]
    return Response(status, [(b"location", slashes[:1] + quote(slashes[1:], safe="").encode() + rest)])


def error_headers(error: S3Error) -> Headers:
    """Return the headers of an error in a website's response."""
    found: Headers = [(b"x-amz-error-code", error.code.encode()), (b"x-amz-error-message", _line(error.text))]
    found += [(b"x-amz-error-detail-" + name.encode(), _line(value)) for name, value in error.extra.items()]
    return found


def _line(text: str) -> bytes:
    return "".join(sign for sign in text if sign.isprintable()).encode("utf-8")


def error_page(request: S3Request, error: S3Error, of_document: S3Error | None = None) -> Response:
    """Render an error as a page. `of_document` is why the website's own could not be read."""
    title = f"{error.status} {HTTPStatus(error.status).phrase}"
    ids = [("RequestId", request.request_id), ("HostId", request.request_id)]
    content = _list([("Code", error.code), ("Message", error.text), *error.extra.items(), *ids])
    if of_document is not None:
        content += "<h3>An Error Occurred While Attempting to Retrieve a Custom Error Document</h3>\n"
        content += _list([("Code", of_document.code), ("Message", of_document.text), *of_document.extra.items()])
    page = (
        f"<html>\n<head><title>{title}</title></head>\n<body>\n<h1>{title}</h1>\n{content}<hr/>\n</body>\n</html>\n"
    ).encode("utf-8", "replace")
    if request.method == "HEAD":
        return Response(error.status, [(b"content-type", HTML), *error_headers(error)], b"", len(page))
    return Response(error.status, [(b"content-type", HTML), *error_headers(error)], page)


def _list(entries: list[tuple[str, str]]) -> str:
    return f"<ul>\n{''.join(f'<li>{escape(name)}: {escape(value)}</li>{chr(10)}' for name, value in entries)}</ul>\n"
