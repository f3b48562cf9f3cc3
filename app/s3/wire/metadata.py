"""The stored headers of an object: from requests, in index rows, and in responses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson

from sluice_s3.app.access.acl import Grants, from_json, to_json
from sluice_s3.app.encryption.scheme import CUSTOMER, Scheme, scheme_of
from sluice_s3.app.encryption.scheme import NAME as ENCRYPTION
from sluice_s3.app.encryption.scheme import to_json as to_json_scheme
from sluice_s3.app.index.object_lock import protection as object_lock
from sluice_s3.app.index.object_lock.protection import LOCK, NONE, Lock
from sluice_s3.app.index.restore import state as restore_state
from sluice_s3.app.index.restore.state import RESTORE, RestoreState, with_restore
from sluice_s3.app.s3.errors import InvalidArgument, InvalidStorageClass, MetadataTooLarge
from sluice_s3.app.s3.wire.dates import http_date
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Headers, render_headers

REDIRECT = "x-amz-website-redirect-location"
SYSTEM_METADATA = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
    REDIRECT,
)
"""System metadata that a client sets ("Working with object metadata", Amazon S3 User Guide)."""
_KEPT = frozenset(SYSTEM_METADATA)
USER_PREFIX = "x-amz-meta-"
MAX_USER_BYTES = 2048
"""Bytes of all names (without prefix) and values of user metadata."""
DEFAULT_TYPE = "binary/octet-stream"
MAX_REMEMBERED = 512
"""Characters of a row's headers that are cached. Most objects have only a type."""
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
"""Entries beside an object's headers, which never have these names: its ACL and its tags.

LOCK, ENCRYPTION and RESTORE are such entries too.
"""
TAG_COUNT = f'"{TAGS}":'
"""Occurs in a row's headers when there are tags. Else only within tags, as the name of one."""
RESPONSE_OVERRIDES = {
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


def object_headers(request: S3Request) -> dict[str, str]:
    """Return system and user metadata of a request. Raises MetadataTooLarge over 2 KB of user metadata.

    `aws-chunked` describes the transfer only, and is removed from the content encoding.
    """
    headers = request.headers
    fields = {} if _KEPT.isdisjoint(headers) else {name: headers[name] for name in SYSTEM_METADATA if name in headers}
    encoding = fields.get("content-encoding")
    if encoding is not None and "aws-chunked" in encoding.lower():
        rest = [coding.strip() for coding in encoding.split(",") if coding.strip().lower() not in ("aws-chunked", "")]
        if rest:
            fields["content-encoding"] = ",".join(rest)
        else:
            del fields["content-encoding"]
    if not fields.get("content-type"):
        fields["content-type"] = DEFAULT_TYPE
    size = 0
    for name in request.amazon:
        if name.startswith(USER_PREFIX):
            fields[name] = value = headers[name]
            size += len(name) - len(USER_PREFIX) + len(value)
    if size > MAX_USER_BYTES:
        raise MetadataTooLarge(Size=size, MaxSizeAllowed=MAX_USER_BYTES)
    _check_redirect(fields)
    return fields


def redirect(request: S3Request) -> dict[str, str]:
    """Return the website redirect that a request sets for its object; empty without."""
    headers = {REDIRECT: request.headers[REDIRECT]} if REDIRECT in request.headers else {}
    _check_redirect(headers)
    return headers


def _check_redirect(headers: Mapping[str, str]) -> None:
    location = headers.get(REDIRECT, "/")
    if not location.startswith(("/", "http://", "https://")):
        raise InvalidArgument("The website redirect location must start with '/', 'http://' or 'https://'.")
    # browsers remove tabs and the like, and treat the rest as another host if it begins so
    if "".join(filter(str.isprintable, location)).startswith(("//", "/\\")):
        raise InvalidArgument("The website redirect location names another host without 'http://' or 'https://'.")


def pack_headers(
    headers: dict[str, str],
    grants: Grants | None = None,
    tags: Mapping[str, str] | None = None,
    lock: Lock = NONE,
    scheme: Scheme | None = None,
) -> str:
    """Return the index's form of headers, ACL, tags, lock and encryption."""
    row: dict[str, Any] = headers if grants is None else {**headers, ACL: to_json(grants)}
    if lock != NONE:
        row = {**row, LOCK: list(lock)}
    if scheme is not None:
        row = {**row, ENCRYPTION: to_json_scheme(scheme)}
    return orjson.dumps({**row, TAGS: tags} if tags else row).decode()


def unpack_headers(stored_headers: str) -> dict[str, str]:
    """Return the headers of an index row."""
    headers: dict[str, str] = orjson.loads(stored_headers)
    headers.pop(ACL, None)
    headers.pop(TAGS, None)
    headers.pop(LOCK, None)
    headers.pop(ENCRYPTION, None)
    headers.pop(RESTORE, None)
    return headers


def grants(stored_headers: str) -> Grants | None:
    """Return the ACL of an index row; None when only the owner has rights."""
    found = orjson.loads(stored_headers).get(ACL) if ACL in stored_headers else None
    return None if found is None else from_json(found)


def tags(stored_headers: str) -> dict[str, str]:
    """Return the tags of an index row."""
    found: dict[str, str] = orjson.loads(stored_headers)[TAGS] if TAG_COUNT in stored_headers else {}
    return found


def lock(stored_headers: str) -> Lock:
    """Return the lock of an index row."""
    return object_lock.lock_of(stored_headers)


def repack(stored_headers: str, **changed: Any) -> str:
    """Return a row's stored headers with other `grants`, `tags` or `lock`."""
    same = {
        "grants": grants(stored_headers),
        "tags": tags(stored_headers),
        "lock": lock(stored_headers),
        "scheme": scheme_of(stored_headers),
    }
    return with_restore(
        pack_headers(unpack_headers(stored_headers), **{**same, **changed}), restore_state.restore_state(stored_headers)
    )


def render_object_headers(stored_headers: str) -> bytes:
    """Render the headers of an index row as lines, each with its line end."""
    return _usual(stored_headers) if len(stored_headers) <= MAX_REMEMBERED else _render(stored_headers)


def _render(stored_headers: str) -> bytes:
    fields = [
        (name.encode("latin-1"), value.encode("latin-1")) for name, value in unpack_headers(stored_headers).items()
    ]
    scheme = scheme_of(stored_headers)
    if scheme is not None:
        fields += encryption_headers(scheme)
    restore = restore_state.restore_state(stored_headers)
    if restore is not None:
        fields.append((b"x-amz-restore", _restored(restore).encode()))
    return render_headers(fields)


def _restored(restore: RestoreState) -> str:
    if not restore.until:
        return 'ongoing-request="true"'
    return f'ongoing-request="false", expiry-date="{http_date(restore.until // 1000)}"'


def encryption_headers(scheme: Scheme) -> Headers:
    """Return the encryption headers of every response; a customer's key adds those of its request."""
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
    """Return the requested storage class; all of AWS's are stored and echoed. Raises InvalidStorageClass."""
    storage_class_name = request.headers.get("x-amz-storage-class", "STANDARD")
    if storage_class_name not in STORAGE_CLASSES:
        raise InvalidStorageClass(StorageClassRequested=storage_class_name)
    return storage_class_name
