"""CreateBucket, HeadBucket, DeleteBucket, GetBucketLocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from app import errors as domain
from app.access.bucket_access import ENFORCED, OWNERSHIPS, initial_settings
from app.errors import BucketAlreadyOwnedByYou
from app.index.locks import SETTING
from app.index.schema import ENABLED, UNVERSIONED
from app.s3 import acls, rights, target, xml
from app.s3.body import document
from app.s3.dispatch import operation
from app.s3.errors import (
    BucketNotEmpty,
    InvalidArgument,
    InvalidBucketAclWithBlockPublicAccessError,
    InvalidBucketAclWithObjectOwnership,
    InvalidBucketName,
    InvalidLocationConstraint,
    NotImplemented,
)
from app.s3.request import S3Request
from app.s3.response import XML, Response
from app.store.buckets import create_bucket as create
from app.store.buckets import delete_bucket as delete

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

STORE = b"x-sluice-store"
LOCK_ENABLED = "x-amz-bucket-object-lock-enabled"
OLD_REGION = "us-east-1"
"""The region that answers 200 to the owner who makes a bucket again, and names itself by an empty constraint."""


@operation("PUT", "bucket", name="CreateBucket", action="s3:CreateBucket", on_bucket=False)
async def create_bucket(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html"""
    name = request.bucket
    assert name is not None
    assert request.account_id is not None
    if not target.valid_bucket_name(name):
        raise InvalidBucketName(BucketName=name)
    lock = _lock(request)
    request.location = _location(await document(request))
    rights.check_location(request)
    _check_rights(request, lock=lock)
    store = _store(gateway, request.location)
    try:
        request.bucket_row = await create(
            gateway.store.of(store),
            name,
            request.account_id,
            gateway.region,
            gateway.settings.max_buckets,
            await _settings(gateway, request, store, lock=lock),
            ENABLED if lock else UNVERSIONED,
        )
    except BucketAlreadyOwnedByYou:
        if gateway.region != OLD_REGION:
            raise
        request.bucket_row = await gateway.bucket(name)
    headers = [(b"location", b"/" + name.encode()), (b"x-amz-bucket-arn", f"arn:aws:s3:::{name}".encode())]
    return Response(200, [*headers, (STORE, request.bucket_row.store.encode())])


def _check_rights(request: S3Request, *, lock: bool) -> None:
    """What users and sessions need besides s3:CreateBucket ("Permissions" of the operation). Raises AccessDenied."""
    if request.principal is None:
        return
    if acls.in_headers(request):
        rights.check(request, "s3:PutBucketAcl", None)
    if "x-amz-object-ownership" in request.headers:
        rights.check(request, "s3:PutBucketOwnershipControls", None)
    if lock:
        rights.check(request, "s3:PutBucketObjectLockConfiguration", None)
        rights.check(request, "s3:PutBucketVersioning", None)


def _lock(request: S3Request) -> bool:
    """Whether the new bucket has object lock. Raises InvalidArgument."""
    asked = request.headers.get(LOCK_ENABLED, "false")
    if asked.lower() not in ("true", "false"):
        raise InvalidArgument(ArgumentName=LOCK_ENABLED, ArgumentValue=asked)
    return asked.lower() == "true"


async def _settings(gateway: Gateway, request: S3Request, store: str, *, lock: bool) -> str:
    """What the new bucket's headers and our settings say of access and of object lock.

    Raises InvalidArgument, InvalidBucketAclWithObjectOwnership, InvalidBucketAclWithBlockPublicAccessError, and
    NotImplemented for ACLs and object lock on plain files.
    """
    asked = request.headers.get("x-amz-object-ownership")
    if asked is not None and asked not in OWNERSHIPS:
        raise InvalidArgument(ArgumentName="x-amz-object-ownership", ArgumentValue=asked)
    plain_files = gateway.store.of(store).tree is not None
    if plain_files and asked not in (None, ENFORCED):
        raise NotImplemented(Header="x-amz-object-ownership")
    if plain_files and lock:
        raise NotImplemented(Header=LOCK_ENABLED)
    ownership = ENFORCED if plain_files else asked or gateway.settings.default_object_ownership
    grants = await acls.of_new_bucket(gateway, request) if acls.in_headers(request) else None
    if grants is not None and ownership == ENFORCED:
        raise InvalidBucketAclWithObjectOwnership()
    if grants is not None and gateway.settings.default_public_access_block and any(one.public for one in grants):
        raise InvalidBucketAclWithBlockPublicAccessError()
    made = initial_settings(gateway.settings, ownership, grants, plain_files=plain_files)
    return orjson.dumps({**orjson.loads(made or "{}"), SETTING: []}).decode() if lock else made


def _location(document: bytes) -> str:
    """The LocationConstraint of a configuration, empty for none. Raises MalformedXML, NotImplemented."""
    if not document.strip():
        return ""
    tree = xml.parse(document, "CreateBucketConfiguration")
    xml.check_children(tree, {"LocationConstraint", "Location", "Bucket", "Tags"})
    for name in ("Location", "Bucket", "Tags"):
        if tree.find(name) is not None:
            raise NotImplemented()
    return xml.text_of(tree, "LocationConstraint") or ""


def _store(gateway: Gateway, constraint: str) -> str:
    """The store that is asked for: REGION, or REGION:STORE as in Ceph's gateway.

    Raises InvalidLocationConstraint for an unknown one.
    """
    region, named, store = (constraint or gateway.region).partition(":")
    if region != gateway.region or (named and store not in gateway.store.all):
        raise InvalidLocationConstraint(LocationConstraint=constraint)
    return store or gateway.store.name


@operation("HEAD", "bucket", name="HeadBucket", action="s3:ListBucket")
async def head_bucket(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html"""
    region = request.bucket_row.region.encode()
    headers = [(b"x-amz-bucket-region", region), (b"x-amz-access-point-alias", b"false")]
    return Response(200, [*headers, (STORE, request.bucket_row.store.encode()), *XML])


@operation("DELETE", "bucket", name="DeleteBucket", action="s3:DeleteBucket")
async def delete_bucket(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucket.html"""
    bucket = request.bucket_row
    try:
        await delete(gateway.store.of(bucket.store), bucket)
    except domain.BucketNotEmpty:
        more = "The bucket you tried to delete is not empty. You must delete all versions in the bucket."
        raise BucketNotEmpty(more if bucket.versioning else None, BucketName=bucket.name) from None
    return Response(204)


@operation("GET", "bucket", "location", name="GetBucketLocation", action="s3:GetBucketLocation")
async def get_bucket_location(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLocation.html"""
    region = request.bucket_row.region
    content = "" if region == OLD_REGION else xml.escape(region)
    return Response(200, list(XML), xml.document("LocationConstraint", content))
