"""Canonical forms of signature version 4, from the raw request line and headers.

Source: "Authenticating Requests (AWS Signature Version 4)", Amazon S3 API Reference. S3 differs from other services:
the path is encoded once and never normalised.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes

from sluice_s3.app.s3.wire.request import S3Request

# %XX as UriEncode writes it: upper-case hex of a byte that is not unreserved. `%2F` is added for queries only.
_ESCAPES = rb"[0189A-F][0-9A-F]|2[0-9A-C]|3[A-F]|40|5[B-E]|60|7[B-DF]"
_TEXT = rb"(?:[A-Za-z0-9\-._~]++|%(?:" + _ESCAPES + rb"|2F))*+"
_CANONICAL_PATH = re.compile(rb"(?:[A-Za-z0-9\-._~/]++|%(?:" + _ESCAPES + rb"))*+")
_CANONICAL_QUERY = re.compile(_TEXT + rb"(?:=" + _TEXT + rb")?(?:&" + _TEXT + rb"(?:=" + _TEXT + rb")?)*+")
_SPACES = re.compile(r"[ \t]+")
_UNTRIMMED = ("  ", "\t", ": ", " \n")
"""One of these is in a canonical request with a value that has blanks to trim or to join."""
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/"


def path_of(raw_path: bytes) -> str:
    """Return the canonical URI. An escaped slash counts as a slash, as in the key that it names."""
    if not raw_path.translate(None, _PLAIN) or _CANONICAL_PATH.fullmatch(raw_path):
        return raw_path.decode("ascii")
    return quote(unquote_to_bytes(raw_path), safe="/-._~")


def raw_path_of(raw_path: bytes) -> str | None:
    """Return the canonical URI with escaped slashes as sent; None without any.

    Some clients sign it so.
    """
    if b"%2F" not in raw_path and b"%2f" not in raw_path:
        return None
    return "/".join(quote(unquote_to_bytes(segment), safe="-._~") for segment in raw_path.split(b"/"))


def query_of(fields: list[str]) -> str:
    """Return the canonical query string of `query_fields`."""
    return "&".join(fields).replace("\0", "=")


def query_fields(raw_query: bytes) -> list[str]:
    """Return the fields of a query string, UriEncoded and sorted by name and value.

    NUL separates name and value: it sorts before all else, so that plain strings have the order of pairs. `+` is a
    space, as in S3.
    """
    if _CANONICAL_QUERY.fullmatch(raw_query):
        text = raw_query.decode("ascii").replace("=", "\0")
        fields = [field if "\0" in field else field + "\0" for field in text.split("&") if field]
    else:
        fields = []
        for part in raw_query.replace(b"+", b"%20").split(b"&"):
            if part:
                name, _, value = part.partition(b"=")
                encoded = quote(unquote_to_bytes(name), safe="-._~"), quote(unquote_to_bytes(value), safe="-._~")
                fields.append("\0".join(encoded))
    fields.sort()
    return fields


def query_by_name(raw_query: bytes) -> str:
    """Return the canonical query string with repeated names in the order sent, as some clients sign it."""
    fields = [field for part in raw_query.split(b"&") for field in query_fields(part)]
    return query_of(sorted(fields, key=lambda field: field.partition("\0")[0]))


def _repeated_value(request: S3Request, name: str) -> str:
    raw_name = name.encode("latin-1", "replace")
    values = [value.decode("latin-1") for field, value in request.header_list if field.lower() == raw_name]
    return ",".join([_SPACES.sub(" ", value).strip(" ") for value in values])


def canonical_request(request: S3Request, path: str, query: str, signed_headers: str, payload: str) -> bytes:
    """Return the canonical request. Header bytes stay as they came (latin-1 both ways).

    Values are trimmed, runs of blanks become one, and values of a repeated field are joined by commas.
    """
    names, form = _cached_template(signed_headers) if len(signed_headers) <= MAX_CACHED else _form(signed_headers)
    values = list(map(request.headers.get, names))
    text = form % (request.method, path, query, *values, payload)
    if request.repeated or None in values or any(map(text.__contains__, _UNTRIMMED)):
        text = form % (request.method, path, query, *[_value(request, name) for name in names], payload)
    return text.encode("latin-1", "replace")


def _form(signed_headers: str) -> tuple[list[str], str]:
    names = signed_headers.split(";")
    escaped = signed_headers.replace("%", "%%")
    lines = escaped.replace(";", ":%s\n")
    return names, f"%s\n%s\n%s\n{lines}:%s\n\n{escaped}\n%s"


MAX_CACHED = 512
_cached_template = lru_cache(maxsize=512)(_form)


def _value(request: S3Request, name: str) -> str:
    value = _repeated_value(request, name) if name in request.repeated else request.headers.get(name, "")
    return _SPACES.sub(" ", value).strip(" ")
