"""What an object keeps of the headers it was put with, and what it answers with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson

from app.access.acl import Grants, from_json, to_json
from app.encryption.scheme import CUSTOMER, Scheme, scheme_of
from app.encryption.scheme import NAME as ENCRYPTION
from app.encryption.scheme import to_json as to_json_scheme
from app.index import locks, restores
from app.index.locks import LOCK, NONE, Lock
from app.index.restores import RESTORE, Restore, with_restore
from app.s3.dates import http_date
from app.s3.errors import InvalidArgument, InvalidStorageClass, MetadataTooLarge
from app.s3.request import S3Request
from app.s3.response import Headers, render

REDIRECT = "x-amz-website-redirect-location"
KEPT = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
    REDIRECT,
)
"""System metadata that a client sets ("Working with object metadata", Amazon S3 User Guide)."""
_KEPT = frozenset(KEPT)
USER = "x-amz-meta-"
MAX_USER_BYTES = 2048
"""Bytes of all names (without prefix) and values of user metadata."""
DEFAULT_TYPE = "binary/octet-stream"
MAX_REMEMBERED = 512
"""Characters of a row's headers up to which they are kept in memory: most objects have only a type."""
STORAGE_CLASSES = frozenset(
    [
        "STANDARD",
        "REDUCED_REDUNDANCY",
        "STANDARD_IA",
        "ONEZONE_IA",
        "INTELLIGENT_TIERING",
        "GLACIER",
        "DEEP_ARCHIVE",
        "GLACIER_IR",
    ]
)
ACL, TAGS = "acl", "tags"
"""Beside the headers of an object, whose names are never these: its access control list, and its tags. So are LOCK,
ENCRYPTION and RESTORE."""
TAGGED = f'"{TAGS}":'
"""In a row's headers when there are tags; else it can only stand within them, as the name of one."""
OVERRIDES = {
    "response-" + name: name.encode()
    for name in (
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-type",
        "expires",
    )
}


def kept_headers(request: S3Request) -> dict[str, str]:
    """System and user metadata of a request. Raises MetadataTooLarge over 2 KB of user metadata.

    `aws-chunked` says how the body travels and is stripped from the content encoding.
    """
    headers = request.headers
    kept = {} if _KEPT.isdisjoint(headers) else {name: headers[name] for name in KEPT if name in headers}
    encoding = kept.get("content-encoding")
    if encoding is not None and "aws-chunked" in encoding.lower():
        rest = [coding.strip() for coding in encoding.split(",") if coding.strip().lower() not in ("aws-chunked", "")]
        if rest:
            kept["content-encoding"] = ",".join(rest)
        else:
            del kept["content-encoding"]
    if not kept.get("content-type"):
        kept["content-type"] = DEFAULT_TYPE
    size = 0
    for name in request.amazon:
        if name.startswith(USER):
            kept[name] = value = headers[name]
            size += len(name) - len(USER) + len(value)
    if size > MAX_USER_BYTES:
        raise MetadataTooLarge(Size=size, MaxSizeAllowed=MAX_USER_BYTES)
    _check_redirect(kept)
    return kept


def redirect(request: S3Request) -> dict[str, str]:
    """Where a request says that websites send on who asks for the object; empty when it does not."""
    kept = {REDIRECT: request.headers[REDIRECT]} if REDIRECT in request.headers else {}
    _check_redirect(kept)
    return kept


def _check_redirect(kept: Mapping[str, str]) -> None:
    if not kept.get(REDIRECT, "/").startswith(("/", "http://", "https://")):
        raise InvalidArgument("The website redirect location must start with '/', 'http://' or 'https://'.")


def encode(
    kept: dict[str, str],
    grants: Grants | None = None,
    tags: Mapping[str, str] | None = None,
    lock: Lock = NONE,
    scheme: Scheme | None = None,
) -> str:
    """The index's form of kept headers, and of the object's access control list, tags, lock and encryption."""
    row: dict[str, Any] = kept if grants is None else {**kept, ACL: to_json(grants)}
    if lock != NONE:
        row = {**row, LOCK: list(lock)}
    if scheme is not None:
        row = {**row, ENCRYPTION: to_json_scheme(scheme)}
    return orjson.dumps({**row, TAGS: tags} if tags else row).decode()


def decode(kept: str) -> dict[str, str]:
    """The headers of an index row."""
    headers: dict[str, str] = orjson.loads(kept)
    headers.pop(ACL, None)
    headers.pop(TAGS, None)
    headers.pop(LOCK, None)
    headers.pop(ENCRYPTION, None)
    headers.pop(RESTORE, None)
    return headers


def grants(kept: str) -> Grants | None:
    """The access control list of an index row, None when the owner has everything and nobody else anything."""
    found = orjson.loads(kept).get(ACL) if ACL in kept else None
    return None if found is None else from_json(found)


def tags(kept: str) -> dict[str, str]:
    """The tags of an index row."""
    found: dict[str, str] = orjson.loads(kept)[TAGS] if TAGGED in kept else {}
    return found


def lock(kept: str) -> Lock:
    """The lock of an index row."""
    return locks.of(kept)


def renewed(kept: str, **changed: Any) -> str:
    """An index row's form of what is kept, with other `grants`, `tags` or `lock`."""
    same = {"grants": grants(kept), "tags": tags(kept), "lock": lock(kept), "scheme": scheme_of(kept)}
    return with_restore(encode(decode(kept), **{**same, **changed}), restores.of(kept))


def rendered(kept: str) -> bytes:
    """The headers of an index row as lines, each with its line end."""
    return _usual(kept) if len(kept) <= MAX_REMEMBERED else _render(kept)


def _render(kept: str) -> bytes:
    fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in decode(kept).items()]
    scheme = scheme_of(kept)
    if scheme is not None:
        fields += encryption_headers(scheme)
    restore = restores.of(kept)
    if restore is not None:
        fields.append((b"x-amz-restore", _restored(restore).encode()))
    return render(fields)


def _restored(restore: Restore) -> str:
    if not restore.until:
        return 'ongoing-request="true"'
    return f'ongoing-request="false", expiry-date="{http_date(restore.until // 1000)}"'


def encryption_headers(scheme: Scheme) -> Headers:
    """What every answer about an object says of its encryption; of a customer's key its request tells the rest."""
    if scheme.method == CUSTOMER:
        return []
    headers = [(b"x-amz-server-side-encryption", scheme.method.encode())]
    if scheme.key:
        headers.append((b"x-amz-server-side-encryption-aws-kms-key-id", scheme.key.encode()))
    if scheme.bucket_key:
        headers.append((b"x-amz-server-side-encryption-bucket-key-enabled", b"true"))
    return headers


_usual = lru_cache(maxsize=1024)(_render)


def storage_class(request: S3Request) -> str:
    """The storage class asked for; every class of AWS's is kept and echoed. Raises InvalidStorageClass."""
    asked = request.headers.get("x-amz-storage-class", "STANDARD")
    if asked not in STORAGE_CLASSES:
        raise InvalidStorageClass(StorageClassRequested=asked)
    return asked
