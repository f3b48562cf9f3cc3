"""Encryption as requests ask for it: how new objects are encrypted, and who may have what is.

"Protecting data with server-side encryption", Amazon S3 User Guide. A request goes over its bucket's default.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import orjson

from app.access.bucket_access import ENCRYPTION
from app.encryption.customer import CustomerKey
from app.encryption.ring import OF_KMS, OF_S3
from app.encryption.scheme import CUSTOMER, KMS, S3, SEALED, Scheme, parsed_scheme, scheme_of
from app.errors import CustomerKeyNeeded, CustomerKeyWrong, NotNow
from app.index.rows import Bucket, Upload, Version
from app.s3 import customer_keys, metadata, rights
from app.s3.customer_keys import OF_OBJECT, OF_SOURCE, SSE
from app.s3.errors import (
    AccessDenied,
    InvalidArgument,
    InvalidRequest,
    KMSDisabledException,
    KMSNotFoundException,
    NotImplemented,
)
from app.s3.refused import CHOICES, no_choice
from app.s3.request import S3Request
from app.s3.response import Headers
from app.store.sealing import Seal

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

KEY_ID, CONTEXT, BUCKET_KEY = f"{SSE}-aws-kms-key-id", f"{SSE}-context", f"{SSE}-bucket-key-enabled"
DSSE = "aws:kms:dsse"
_SETTING = f'"{ENCRYPTION}":'
"""In a bucket's settings when it has a default encryption."""
ARN, ACCOUNT = "arn:aws:kms:", "000000000000"
"""Keys of the ring belong to the gateway, and to no account of it."""
OF_AWS = "aws/s3"
READ, WRITE = "kms:Decrypt", "kms:GenerateDataKey"
"""Rights to a key of KMS ("Using server-side encryption with AWS KMS keys", Amazon S3 User Guide, "Permissions"). A
HEAD needs none, unless it asks for checksums ("HeadObject", Amazon S3 API Reference)."""
CHECKSUMS = "x-amz-checksum-mode"
NOT_APPLICABLE = "The encryption parameters are not applicable to this object."
NOT_OF_UPLOAD = (
    "The multipart upload initiate requested encryption. Subsequent part requests must include the appropriate "
    "encryption parameters."
)
NEEDS_V4 = "Requests specifying Server Side Encryption with AWS KMS managed keys require AWS Signature Version 4."
NEEDS_KMS = (
    "Server Side Encryption with AWS KMS managed key requires HTTP header x-amz-server-side-encryption : aws:kms"
)


class Default(NamedTuple):
    """How a bucket's new objects are encrypted unless they say otherwise. See `PutBucketEncryption`."""

    method: str = ""
    key: str = ""
    """As it was put."""
    bucket_key: bool = False
    blocked: bool | None = None
    """No new object may be encrypted with a customer's key; None: nothing was said of that."""


NO_DEFAULT = Default()


def default_of(bucket: Bucket) -> Default:
    """The default encryption of a bucket."""
    return _parsed(bucket.settings) if _SETTING in bucket.settings else NO_DEFAULT


@lru_cache(maxsize=4096)
def _parsed(settings: str) -> Default:
    found = orjson.loads(settings).get(ENCRYPTION)
    return NO_DEFAULT if found is None else Default(*found)


# keys of the ring
def arn_of(gateway: Gateway, key_id: str) -> str:
    """The name by which answers call a key of the ring."""
    return f"{ARN}{gateway.region}:{ACCOUNT}:key/{key_id}"


def key_of(gateway: Gateway, text: str) -> str:
    """The key of the ring that a request names by id, alias or ARN. Raises KMSNotFoundException, KMSDisabled…"""
    name = text
    if text.startswith(ARN):
        region, _, rest = text.removeprefix(ARN).partition(":")
        if region != gateway.region:
            raise KMSNotFoundException(f"Invalid arn {region}")
        account, _, name = rest.partition(":")
        if account != ACCOUNT:
            raise KMSNotFoundException(f"Key '{text}' does not exist")
        name = name if name.startswith("alias/") else name.removeprefix("key/")
    if name.startswith("alias/"):
        name = name.removeprefix("alias/")
        name = OF_KMS if name == OF_AWS else name
    key = gateway.store.keyring.ring.keys.get(name)
    if key is None or name == OF_S3:
        raise KMSNotFoundException(f"Invalid keyId '{text}'")
    if key.disabled:
        raise KMSDisabledException(f"{arn_of(gateway, name)} is disabled.")
    return name


# new objects
async def prepare(gateway: Gateway, request: S3Request) -> None:
    """Wait for what `of_new` needs to know, if it needs anything."""
    if request.sse or _SETTING in request.bucket_row.settings:
        await gateway.store.keyring.refresh()


async def check_possible(gateway: Gateway, bucket: Bucket) -> None:
    """Raises NotImplemented, NoKeyRing where a bucket's objects could not be encrypted with keys of the server."""
    if gateway.tree_of(bucket) is not None:
        raise NotImplemented()
    await gateway.store.keyring.refresh()
    gateway.store.keyring.ring  # noqa: B018 - raises NoKeyRing


def check_now(gateway: Gateway, request: S3Request) -> None:
    """Raises NotNow where `prepare` would wait."""
    if (request.sse or _SETTING in request.bucket_row.settings) and not gateway.store.keyring.is_fresh:
        raise NotNow


def of_new(gateway: Gateway, request: S3Request) -> Seal | None:
    """How the object that a request makes is encrypted, None when it is not. `prepare` was awaited.

    Raises InvalidArgument, AccessDenied, KMSNotFoundException, KMSDisabledException, NoKeyRing, and NotImplemented for
    plain files and what is not built.
    """
    bucket = request.bucket_row
    if not request.sse and _SETTING not in bucket.settings:
        return None
    headers, default = request.headers, default_of(bucket)
    method, key_id = headers.get(SSE), headers.get(KEY_ID)
    if gateway.tree_of(bucket) is not None and (request.sse or default != NO_DEFAULT):
        raise NotImplemented(Header=SSE)
    if method is not None and any(name.startswith(OF_OBJECT) for name in request.amazon):
        raise InvalidArgument(
            "Server Side Encryption with Customer provided key is incompatible with the encryption method specified",
            ArgumentName=SSE,
            ArgumentValue=method,
        )
    if CONTEXT in headers:
        raise NotImplemented(Header=CONTEXT)
    if key_id is not None and method not in (KMS, DSSE):
        raise InvalidArgument(NEEDS_KMS, ArgumentName=SSE, ArgumentValue=method or "null")
    bucket_key = headers.get(BUCKET_KEY, "false")
    if bucket_key.lower() not in ("true", "false"):
        raise InvalidArgument(ArgumentName=BUCKET_KEY, ArgumentValue=bucket_key[:64])
    customer = customer_keys.given(gateway, request)
    if customer is not None:
        _check_not_blocked(bucket)
        return Seal(Scheme(CUSTOMER, ":".join(customer.new_check())), customer.envelope, customer.etag)
    if method is None:
        method, key_id = default.method or None, default.key or None
    return None if method is None else _of_ring(gateway, request, method, key_id)


def _check_not_blocked(bucket: Bucket) -> None:
    """Raises AccessDenied where no new bytes may be encrypted with a customer's key."""
    if default_of(bucket).blocked:
        raise AccessDenied(
            "This bucket has blocked upload requests that specify Server Side Encryption with Customer provided "
            "keys (SSE-C). Please specify a different server-side encryption type"
        )


def _of_ring(gateway: Gateway, request: S3Request, method: str, key_id: str | None) -> Seal:
    if method == S3:
        return ring_seal(gateway, Scheme(S3), OF_S3)
    if method == DSSE:
        raise NotImplemented(Header=SSE)
    if method != KMS:
        raise InvalidArgument(
            "The encryption method specified is not supported", ArgumentName=SSE, ArgumentValue=method
        )
    _check_signed(request)
    found = OF_KMS if key_id is None else key_of(gateway, key_id)
    if found == OF_KMS:
        key_of(gateway, f"alias/{OF_AWS}")
    bucket_key = request.headers.get(BUCKET_KEY)
    wanted = default_of(request.bucket_row).bucket_key if bucket_key is None else bucket_key.lower() == "true"
    _check_use(request, WRITE, arn_of(gateway, found))
    return ring_seal(gateway, Scheme(KMS, arn_of(gateway, found), wanted), found)


def _check_use(request: S3Request, action: str, key: str) -> None:
    """Raises AccessDenied for a caller who may not use a key of the ring."""
    rights.check_key_use(request, action, key, of_aws=key.rpartition("/")[2] == OF_KMS)


def ring_seal(gateway: Gateway, scheme: Scheme, key_id: str) -> Seal:
    """What encrypts by a key of the ring."""
    ring = gateway.store.keyring.ring
    keyed = partial(ring.etag, key_id) if scheme.is_opaque else None
    return Seal(scheme, partial(ring.envelope, key_id), keyed)


def _check_signed(request: S3Request) -> None:
    """Raises InvalidArgument for a request about a key of KMS that is not signed, or by version 2. Forms may be."""
    claim = request.signature
    if claim is None or (claim.version == "v2" and claim.via != "form"):
        raise InvalidArgument(NEEDS_V4, ArgumentName="Authorization", ArgumentValue="null")


async def ready(gateway: Gateway, request: S3Request, seal: Seal | None) -> None:
    """Return once what is encrypted so can be read again, whatever becomes of the index. Raises StoreUnavailable."""
    if seal is not None and seal.scheme.method != CUSTOMER:
        await gateway.store.keyring.kept(request.bucket_row.store)


def check_ready(gateway: Gateway, request: S3Request, seal: Seal | None) -> None:
    """Raises NotNow where `ready` would wait."""
    if seal is not None and seal.scheme.method != CUSTOMER:
        gateway.store.keyring.check_kept(request.bucket_row.store)


def answered(request: S3Request, scheme: Scheme | None) -> Headers:
    """What an answer says of how an object is encrypted."""
    if scheme is None:
        return []
    return customer_keys.answered(request) if scheme.method == CUSTOMER else metadata.encryption_headers(scheme)


# objects that are there
async def check_read(gateway: Gateway, request: S3Request, version: Version) -> CustomerKey | None:
    """The customer's key that a version is to be read with, None for one that needs none.

    Raises InvalidRequest for a key that is missing or not applicable, AccessDenied for another one, InvalidArgument.
    """
    if SEALED in version.headers:
        await gateway.store.keyring.refresh()
    return check_read_now(gateway, request, version)


def check_read_now(
    gateway: Gateway, request: S3Request, version: Version, *, source: bool = False
) -> CustomerKey | None:
    """The same without an await: a ring that may have been changed is used as it is known."""
    if not request.sse and not source and SEALED in version.headers and parsed_scheme(version.headers).method == S3:
        return None
    scheme = parsed_scheme(version.headers) if SEALED in version.headers else None
    customer = customer_keys.given(gateway, request, OF_SOURCE if source else OF_OBJECT)
    if scheme is None or scheme.method != CUSTOMER:
        if customer is not None:
            raise InvalidRequest(NOT_APPLICABLE)
        if scheme is not None and scheme.method == KMS:
            _check_signed(request)
            if request.method != "HEAD" or source or CHECKSUMS in request.headers:
                _check_use(request, READ, scheme.key)
        return None
    if customer is None:
        raise CustomerKeyNeeded()
    if not customer.fits(*scheme.key.split(":")):
        raise CustomerKeyWrong()
    return customer


# copies
def source_key(gateway: Gateway, request: S3Request, found: Version) -> CustomerKey | None:
    """The customer's key that the source of a copy is to be read with. Raises as `check_read`."""
    return check_read_now(gateway, request, found, source=True)


def is_same(gateway: Gateway, request: S3Request, seal: Seal | None, found: Version) -> bool:
    """Whether blobs of a version can be those of what `seal` is of, too: they open with the same key."""
    scheme = scheme_of(found.headers)
    if seal is None or scheme is None or scheme.method != seal.scheme.method:
        return seal is None and scheme is None
    if scheme.method == CUSTOMER:
        return source_key(gateway, request, found) == customer_keys.given(gateway, request)
    return scheme.key == seal.scheme.key


def changes(request: S3Request, seal: Seal | None, found: Version) -> bool:
    """Whether a copy of a version onto itself changes its encryption."""
    before, after = scheme_of(found.headers), None if seal is None else seal.scheme
    return request.sse or (before and before[:2]) != (after and after[:2])


# uploads
def of_upload(gateway: Gateway, request: S3Request, upload: Upload | Version) -> Seal | None:
    """How the parts of an upload are encrypted: as it was begun; what is appended: as the object is. Raises
    InvalidRequest, InvalidArgument."""
    if request.sse:
        for name in CHOICES.intersection(request.headers):  # of what is appended
            raise no_choice(request, name)
    scheme = parsed_scheme(upload.headers) if SEALED in upload.headers else None
    customer = customer_keys.given(gateway, request) if request.sse else None
    if (customer is not None) != (scheme is not None and scheme.method == CUSTOMER):
        raise InvalidRequest(NOT_OF_UPLOAD)
    if scheme is None:
        return None
    if customer is not None:
        _check_not_blocked(request.bucket_row)
        if not customer.fits(*scheme.key.split(":")):
            raise InvalidRequest("The provided encryption parameters did not match the ones used originally.")
        return Seal(scheme, customer.envelope, customer.etag)
    if scheme.method == S3:
        return ring_seal(gateway, scheme, OF_S3)
    _check_use(request, WRITE, scheme.key)
    return ring_seal(gateway, scheme, scheme.key.rpartition("/")[2])


def check_complete(gateway: Gateway, request: S3Request, upload: Upload) -> None:
    """Complete needs a customer's key only of an upload that was begun with a checksum algorithm; one that is given
    must be right, and of KMS's keys the right to decrypt ("CompleteMultipartUpload", Amazon S3 API Reference). Raises
    InvalidRequest, InvalidArgument, AccessDenied."""
    scheme = scheme_of(upload.headers)
    if scheme is not None and scheme.method == KMS:
        _check_use(request, READ, scheme.key)
    needed = scheme is not None and scheme.method == CUSTOMER and bool(upload.checksum_algorithm)
    if request.sse or needed:
        of_upload(gateway, request, upload)
