"""Encryption of new objects, and the checks for reading encrypted ones.

"Protecting data with server-side encryption", Amazon S3 User Guide. A request overrides its bucket's default.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import orjson

from sluice_s3.app.access.bucket_access import ENCRYPTION
from sluice_s3.app.encryption.keyring import OF_KMS, OF_S3
from sluice_s3.app.encryption.scheme import CUSTOMER, KMS, S3, SEALED, Scheme, parse_scheme, scheme_of
from sluice_s3.app.encryption.sse_c import CustomerKey
from sluice_s3.app.errors import CustomerKeyNeeded, CustomerKeyWrong
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import Upload
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.encryption import customer_keys
from sluice_s3.app.s3.encryption.customer_keys import OBJECT_HEADERS, SOURCE_HEADERS, SSE
from sluice_s3.app.s3.errors import (
    AccessDenied,
    InvalidArgument,
    InvalidRequest,
    KMSDisabledException,
    KMSNotFoundException,
    NotImplemented,
)
from sluice_s3.app.s3.unsupported_headers import SSE_ALGORITHMS, sse_not_applicable
from sluice_s3.app.s3.wire import metadata
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Headers
from sluice_s3.app.store.encryption.encrypted_source import ObjectEncryption

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

KEY_ID, CONTEXT, BUCKET_KEY = f"{SSE}-aws-kms-key-id", f"{SSE}-context", f"{SSE}-bucket-key-enabled"
DSSE = "aws:kms:dsse"
_SETTING = f'"{ENCRYPTION}":'
"""Occurs in the settings of a bucket with a default encryption."""
ARN, ACCOUNT = "arn:aws:kms:", "000000000000"
"""Keys of the key ring belong to the gateway, and to none of its accounts."""
AWS_ALIAS = "aws/s3"
READ, WRITE = "kms:Decrypt", "kms:GenerateDataKey"
"""Permissions on a key of KMS. A HEAD needs none, unless it requests checksums.

"Using server-side encryption with AWS KMS keys", Amazon S3 User Guide, "Permissions"; "HeadObject", Amazon S3 API
Reference.
"""
CHECKSUMS = "x-amz-checksum-mode"
NOT_APPLICABLE = "The encryption parameters are not applicable to this object."
NOT_ON_UPLOAD = (
    "The multipart upload initiate requested encryption. Subsequent part requests must include the appropriate "
    "encryption parameters."
)
NEEDS_V4 = "Requests specifying Server Side Encryption with AWS KMS managed keys require AWS Signature Version 4."
NEEDS_KMS = (
    "Server Side Encryption with AWS KMS managed key requires HTTP header x-amz-server-side-encryption : aws:kms"
)


class BucketEncryption(NamedTuple):
    """The default encryption of a bucket's new objects. See `PutBucketEncryption`."""

    method: str = ""
    key: str = ""
    """The key as it was put."""
    bucket_key: bool = False
    blocked: bool | None = None
    """Customers' keys are refused for new objects; None: not set."""


NO_DEFAULT = BucketEncryption()


def default_of(bucket: Bucket) -> BucketEncryption:
    """Return the default encryption of a bucket."""
    return _parsed(bucket.settings) if _SETTING in bucket.settings else NO_DEFAULT


@lru_cache(maxsize=4096)
def _parsed(settings: str) -> BucketEncryption:
    found = orjson.loads(settings).get(ENCRYPTION)
    return NO_DEFAULT if found is None else BucketEncryption(*found)


# keys of the key ring
def arn_of_key(services: Services, key_id: str) -> str:
    """Return the ARN of a key of the key ring in responses."""
    return f"{ARN}{services.region}:{ACCOUNT}:key/{key_id}"


def key_of(services: Services, text: str) -> str:
    """Return the key of the key ring by id, alias or ARN.

    Raises KMSNotFoundException, KMSDisabledException.
    """
    name = text
    if text.startswith(ARN):
        region, _, rest = text.removeprefix(ARN).partition(":")
        if not services.regions.accepts(region):
            raise KMSNotFoundException(f"Invalid arn {region}")
        account, _, name = rest.partition(":")
        if account != ACCOUNT:
            raise KMSNotFoundException(f"Key '{text}' does not exist")
        name = name if name.startswith("alias/") else name.removeprefix("key/")
    if name.startswith("alias/"):
        name = name.removeprefix("alias/")
        name = OF_KMS if name == AWS_ALIAS else name
    key = services.store.keyring.ring.keys.get(name)
    if key is None or name == OF_S3:
        raise KMSNotFoundException(f"Invalid keyId '{text}'")
    if key.disabled:
        raise KMSDisabledException(f"{arn_of_key(services, name)} is disabled.")
    return name


# new objects
async def load_keyring(services: Services, request: S3Request) -> None:
    """Load the key ring if `encryption_of_new_object` needs it."""
    if request.sse or _SETTING in request.bucket_row.settings:
        await services.store.keyring.refresh()


async def require_possible(services: Services, bucket: Bucket) -> None:
    """Raise NotImplemented or NoKeyRing where objects cannot be encrypted with keys of the server."""
    if services.tree_of(bucket) is not None:
        raise NotImplemented()
    await services.store.keyring.refresh()
    services.store.keyring.ring  # noqa: B018 - raises NoKeyRing


def encryption_of_new_object(services: Services, request: S3Request) -> ObjectEncryption | None:
    """Return the encryption of the object that a request writes; None without. Needs `load_keyring` first.

    Raises InvalidArgument, AccessDenied, KMSNotFoundException, KMSDisabledException, NoKeyRing, and NotImplemented for
    plain files and unsupported methods.
    """
    bucket = request.bucket_row
    if not request.sse and _SETTING not in bucket.settings:
        return None
    headers, default = request.headers, default_of(bucket)
    method, key_id = headers.get(SSE), headers.get(KEY_ID)
    if services.tree_of(bucket) is not None and (request.sse or default != NO_DEFAULT):
        raise NotImplemented(Header=SSE)
    if method is not None and any(name.startswith(OBJECT_HEADERS) for name in request.amazon):
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
    customer = customer_keys.parse_customer_key(services, request)
    if customer is not None:
        _check_not_blocked(bucket)
        return ObjectEncryption(Scheme(CUSTOMER, ":".join(customer.new_check())), customer.envelope, customer.etag)
    if method is None:
        method, key_id = default.method or None, default.key or None
    return None if method is None else _encryption_by_ring(services, request, method, key_id)


def _check_not_blocked(bucket: Bucket) -> None:
    """Raise AccessDenied where new objects must not use a customer's key."""
    if default_of(bucket).blocked:
        raise AccessDenied(
            "This bucket has blocked upload requests that specify Server Side Encryption with Customer provided "
            "keys (SSE-C). Please specify a different server-side encryption type"
        )


def _encryption_by_ring(services: Services, request: S3Request, method: str, key_id: str | None) -> ObjectEncryption:
    if method == S3:
        return encrypt_with_ring_key(services, Scheme(S3), OF_S3)
    if method == DSSE:
        raise NotImplemented(Header=SSE)
    if method != KMS:
        raise InvalidArgument(
            "The encryption method specified is not supported", ArgumentName=SSE, ArgumentValue=method
        )
    _require_signature(request)
    found = OF_KMS if key_id is None else key_of(services, key_id)
    if found == OF_KMS:
        key_of(services, f"alias/{AWS_ALIAS}")
    bucket_key = request.headers.get(BUCKET_KEY)
    uses_bucket_key = default_of(request.bucket_row).bucket_key if bucket_key is None else bucket_key.lower() == "true"
    _check_use(request, WRITE, arn_of_key(services, found))
    return encrypt_with_ring_key(services, Scheme(KMS, arn_of_key(services, found), uses_bucket_key), found)


def _check_use(request: S3Request, action: str, key: str) -> None:
    """Raise AccessDenied for a caller who may not use a key of the key ring."""
    authorization.authorize_kms_key(request, action, key, of_aws=key.rpartition("/")[2] == OF_KMS)


def encrypt_with_ring_key(services: Services, scheme: Scheme, key_id: str) -> ObjectEncryption:
    """Return an encryption with a key of the key ring."""
    ring = services.store.keyring.ring
    keyed = partial(ring.etag, key_id) if scheme.is_opaque else None
    return ObjectEncryption(scheme, partial(ring.envelope, key_id), keyed)


def _require_signature(request: S3Request) -> None:
    """Raise InvalidArgument for an unsigned request with a KMS key. Also for version 2, except in forms."""
    signature = request.signature
    if signature is None or (signature.version == "v2" and signature.via != "form"):
        raise InvalidArgument(NEEDS_V4, ArgumentName="Authorization", ArgumentValue="null")


async def wait_until_key_journaled(services: Services, request: S3Request, seal: ObjectEncryption | None) -> None:
    """Wait until the key is journaled, so that its objects stay readable without the index.

    Raises StoreUnavailable.
    """
    if seal is not None and seal.scheme.method != CUSTOMER:
        await services.store.keyring.wait_until_journaled(request.bucket_row.store)


def response_headers(request: S3Request, scheme: Scheme | None) -> Headers:
    """Return the response headers for an object's encryption."""
    if scheme is None:
        return []
    return customer_keys.echo_headers(request) if scheme.method == CUSTOMER else metadata.encryption_headers(scheme)


# stored objects
async def check_read(services: Services, request: S3Request, version: Version) -> CustomerKey | None:
    """Return the customer's key for reading a version; None if it needs none.

    Raises InvalidRequest for a key that is missing or not applicable, AccessDenied for another one, InvalidArgument.
    """
    if SEALED in version.headers:
        await services.store.keyring.refresh()
    return _check_read(services, request, version)


def _check_read(
    services: Services, request: S3Request, version: Version, *, source: bool = False
) -> CustomerKey | None:
    """Return the same with the key ring as last loaded."""
    if not request.sse and not source and SEALED in version.headers and parse_scheme(version.headers).method == S3:
        return None
    scheme = parse_scheme(version.headers) if SEALED in version.headers else None
    customer = customer_keys.parse_customer_key(services, request, SOURCE_HEADERS if source else OBJECT_HEADERS)
    if scheme is None or scheme.method != CUSTOMER:
        if customer is not None:
            raise InvalidRequest(NOT_APPLICABLE)
        if scheme is not None and scheme.method == KMS:
            _require_signature(request)
            if request.method != "HEAD" or source or CHECKSUMS in request.headers:
                _check_use(request, READ, scheme.key)
        return None
    if customer is None:
        raise CustomerKeyNeeded()
    if not customer.fits(*scheme.key.split(":")):
        raise CustomerKeyWrong()
    return customer


# copies
def source_key(services: Services, request: S3Request, found: Version) -> CustomerKey | None:
    """Return the customer's key for reading the source of a copy. Raises as `check_read`."""
    return _check_read(services, request, found, source=True)


def is_same_key(services: Services, request: S3Request, seal: ObjectEncryption | None, found: Version) -> bool:
    """Return whether a copy can share a version's blobs. Both must open with the same key."""
    scheme = scheme_of(found.headers)
    if seal is None or scheme is None or scheme.method != seal.scheme.method:
        return seal is None and scheme is None
    if scheme.method == CUSTOMER:
        return source_key(services, request, found) == customer_keys.parse_customer_key(services, request)
    return scheme.key == seal.scheme.key


def changes_encryption(request: S3Request, seal: ObjectEncryption | None, found: Version) -> bool:
    """Return whether a copy of a version onto itself changes its encryption."""
    before, after = scheme_of(found.headers), None if seal is None else seal.scheme
    return request.sse or (before and before[:2]) != (after and after[:2])


# uploads
def encryption_of_part(services: Services, request: S3Request, upload: Upload | Version) -> ObjectEncryption | None:
    """Return the encryption of an upload's parts, or of appended bytes.

    It is that of the upload or object. Raises InvalidRequest, InvalidArgument.
    """
    if request.sse:
        for name in SSE_ALGORITHMS.intersection(request.headers):  # only an append can have them
            raise sse_not_applicable(request, name)
    scheme = parse_scheme(upload.headers) if SEALED in upload.headers else None
    customer = customer_keys.parse_customer_key(services, request) if request.sse else None
    if (customer is not None) != (scheme is not None and scheme.method == CUSTOMER):
        raise InvalidRequest(NOT_ON_UPLOAD)
    if scheme is None:
        return None
    if customer is not None:
        _check_not_blocked(request.bucket_row)
        if not customer.fits(*scheme.key.split(":")):
            raise InvalidRequest("The provided encryption parameters did not match the ones used originally.")
        return ObjectEncryption(scheme, customer.envelope, customer.etag)
    if scheme.method == S3:
        return encrypt_with_ring_key(services, scheme, OF_S3)
    _check_use(request, WRITE, scheme.key)
    return encrypt_with_ring_key(services, scheme, scheme.key.rpartition("/")[2])


def check_complete(services: Services, request: S3Request, upload: Upload) -> None:
    """Check the key of a request that completes an upload.

    A customer's key is needed only for an upload with a checksum algorithm, but must be correct if present; a KMS key
    needs the permission to decrypt ("CompleteMultipartUpload", Amazon S3 API Reference). Raises InvalidRequest,
    InvalidArgument, AccessDenied.
    """
    scheme = scheme_of(upload.headers)
    if scheme is not None and scheme.method == KMS:
        _check_use(request, READ, scheme.key)
    needed = scheme is not None and scheme.method == CUSTOMER and bool(upload.checksum_algorithm)
    if request.sse or needed:
        encryption_of_part(services, request, upload)
