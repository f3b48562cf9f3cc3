"""Parses request line and Host header into bucket and key, in one place (law 7)."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.errors import InvalidArgument, InvalidBucketName, InvalidURI, KeyTooLongError, NoSuchBucket

MAX_KEY_BYTES = 1024
"""Longest key in bytes of UTF-8 (Amazon S3 User Guide, "Naming Amazon S3 objects")."""

MAX_HOST = 261
"""Longest name of a host with a port (RFC 1035, 2.3.4)."""
PERCENT = ord("%")
"""An int: a search for one byte takes a tenth of the time."""
_BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_OLD_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{1,253}[A-Za-z0-9_-]")
_IPV4 = re.compile(r"\d{1,3}(\.\d{1,3}){3}")
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_BAD_PREFIXES = ("xn--", "sthree-", "amzn-s3-demo-")
_BAD_SUFFIXES = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")


def decode(raw: bytes) -> str:
    """Percent-decode to text. Raises InvalidURI for a broken escape or bytes that are not UTF-8."""
    if PERCENT in raw:
        if _BAD_ESCAPE.search(raw):
            raise InvalidURI()
        raw = unquote_to_bytes(raw)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidURI() from None


def parse_target(raw_path: bytes, host: str, domains: tuple[str, ...]) -> tuple[str | None, str | None, bool]:
    """Return bucket, key, and whether the bucket is from the Host header.

    `raw_path` is the request target before `?`, starting with a slash. An empty key is None. Raises InvalidURI, and
    InvalidBucketName for a key without a bucket (`//key`).
    """
    virtual = bucket_of_host(host, domains) if domains else None
    if virtual is not None:
        return virtual, decode(raw_path[1:]) or None, True
    if PERCENT not in raw_path and raw_path.isascii():
        name, _, rest = raw_path.decode("ascii")[1:].partition("/")
        if name:
            return name, rest or None, False
    bucket, _, key = raw_path[1:].partition(b"/")
    if key and not bucket:
        raise InvalidBucketName(BucketName="")
    return decode(bucket) or None, decode(key) or None, False


def host_name(host: str) -> str:
    """Return the name in a Host header, in lower case and without the port."""
    name = host.lower()
    if not name.endswith("]"):
        name = name.partition(":")[0] if name.count(":") == 1 else name
    return name


def bucket_of_host(host: str, domains: tuple[str, ...]) -> str | None:
    """Return the bucket of a Host header under one of `domains`. None for the service itself."""
    if len(host) > MAX_HOST:  # it would stay in memory
        return _find_bucket.__wrapped__(host, domains)
    return _find_bucket(host, domains)


@lru_cache(maxsize=1024)
def _find_bucket(host: str, domains: tuple[str, ...]) -> str | None:
    name = host_name(host)
    for domain in domains:
        if name.endswith("." + domain):
            return name[: -len(domain) - 1]
    return None


def is_bucket_name(name: str) -> bool:
    """Return whether a name meets AWS's rules for general purpose buckets.

    "Bucket naming rules", Amazon S3 User Guide.
    """
    return (
        _BUCKET_NAME.fullmatch(name) is not None
        and ".." not in name
        and _IPV4.fullmatch(name) is None
        and not name.startswith(_BAD_PREFIXES)
        and not name.endswith(_BAD_SUFFIXES)
    )


def require_bucket(name: str, bucket: Bucket | None) -> Bucket:
    """Return the bucket of a lookup by name.

    Raises NoSuchBucket, and InvalidBucketName for a name that AWS never accepted, also not before March 2018 in
    us-east-1 ("Bucket naming rules", Amazon S3 User Guide).
    """
    if bucket is None:
        if _OLD_NAME.fullmatch(name) is None or ".." in name:
            raise InvalidBucketName(BucketName=name)
        raise NoSuchBucket(BucketName=name)
    return bucket


def validate_key(key: str) -> None:
    """Raise for a key that AWS refuses: too long, or climbing above the bucket.

    The limit is 1024 bytes. Read left to right, `..` segments may never outnumber the real ones ("Creating object key
    names", Amazon S3 User Guide).
    """
    size = len(key) if key.isascii() else len(key.encode("utf-8", "surrogatepass"))
    if size > MAX_KEY_BYTES:
        raise KeyTooLongError(Size=size, MaxSizeAllowed=MAX_KEY_BYTES)
    if ".." not in key:
        return
    depth = 0
    for segment in key.split("/"):
        if segment == "..":
            depth -= 1
            if depth < 0:
                raise InvalidURI()
        elif segment not in ("", "."):
            depth += 1


def parse_query(raw: bytes) -> dict[str, str]:
    """Return decoded names with their first decoded values.

    A name without `=` has an empty value; `+` is a space. Raises InvalidURI for broken escapes, InvalidArgument for
    more than 1000 parameters.
    """
    if not raw:
        return {}
    fields = raw.split(b"&")
    if len(fields) > 1000:
        raise InvalidArgument("Too many query parameters.")
    query: dict[str, str] = {}
    for field in fields:
        if field:
            name, _, value = field.partition(b"=")
            query.setdefault(decode(name.replace(b"+", b" ")), decode(value.replace(b"+", b" ")))
    return query
