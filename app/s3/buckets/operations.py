"""CreateBucket, HeadBucket, DeleteBucket, GetBucketLocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from sluice_s3.app import errors as domain
from sluice_s3.app.access.bucket_access import ENFORCED, OWNERSHIPS, initial_settings
from sluice_s3.app.errors import BucketAlreadyOwnedByYou
from sluice_s3.app.index.object_lock.protection import SETTING
from sluice_s3.app.index.schema.tables import ENABLED, UNVERSIONED
from sluice_s3.app.s3.acl import grants as acls
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.errors import (
    BucketNotEmpty,
    InvalidArgument,
    InvalidBucketAclWithBlockPublicAccessError,
    InvalidBucketAclWithObjectOwnership,
    InvalidBucketName,
    InvalidLocationConstraint,
    MalformedXML,
    NotImplemented,
)
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.tagging import tags
from sluice_s3.app.s3.tagging.operations import SETTING as TAGS
from sluice_s3.app.s3.wire import target, xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response
from sluice_s3.app.store.buckets import create_bucket as create
from sluice_s3.app.store.buckets import delete_bucket as delete

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

STORE = b"x-sluice-store"
LOCK_ENABLED = "x-amz-bucket-object-lock-enabled"
OLD_REGION = "us-east-1"
"""The region that answers 200 to an owner's repeated CreateBucket, and has an empty constraint."""


@operation("PUT", "bucket", name="CreateBucket", action="s3:CreateBucket", on_bucket=False)
async def create_bucket(services: Services, request: S3Request) -> Response:
    """Handle CreateBucket (https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html)."""
    name = request.bucket
    assert name is not None
    assert request.account_id is not None
    if not target.is_bucket_name(name):
        raise InvalidBucketName(BucketName=name)
    lock = _lock(request)
    request.location, request.bucket_tags = _configuration(await read_document(request))
    request.region = region = services.regions.named(request.location)
    authorization.authorize_location(request)
    _check_rights(request, lock=lock)
    store = _store(services, request.location)
    try:
        request.bucket_row = await create(
            services.store.of(store),
            name,
            request.account_id,
            region,
            services.settings.max_buckets,
            await _settings(services, request, store, lock=lock),
            ENABLED if lock else UNVERSIONED,
        )
    except BucketAlreadyOwnedByYou:
        if region != OLD_REGION or request.bucket_tags:
            raise
        request.bucket_row = await services.bucket(name)
    headers = [(b"location", b"/" + name.encode()), (b"x-amz-bucket-arn", f"arn:aws:s3:::{name}".encode())]
    return Response(200, [*headers, (STORE, request.bucket_row.store.encode())])


def _check_rights(request: S3Request, *, lock: bool) -> None:
    """Require the permissions that users and sessions need besides s3:CreateBucket.

    "Permissions" of the operation. Raises AccessDenied.
    """
    if request.principal is None:
        return
    if acls.has_acl_headers(request):
        authorization.require_action(request, "s3:PutBucketAcl", None)
    if "x-amz-object-ownership" in request.headers:
        authorization.require_action(request, "s3:PutBucketOwnershipControls", None)
    if lock:
        authorization.require_action(request, "s3:PutBucketObjectLockConfiguration", None)
        authorization.require_action(request, "s3:PutBucketVersioning", None)
    if request.bucket_tags:
        authorization.require_action(request, "s3:TagResource", None)


def _lock(request: S3Request) -> bool:
    """Return whether the new bucket has object lock. Raises InvalidArgument."""
    enabled = request.headers.get(LOCK_ENABLED, "false")
    if enabled.lower() not in ("true", "false"):
        raise InvalidArgument(ArgumentName=LOCK_ENABLED, ArgumentValue=enabled)
    return enabled.lower() == "true"


async def _settings(services: Services, request: S3Request, store: str, *, lock: bool) -> str:
    """Return the new bucket's settings from its headers, its tags and the configured defaults.

    Raises InvalidArgument, InvalidBucketAclWithObjectOwnership, InvalidBucketAclWithBlockPublicAccessError, and
    NotImplemented for ACLs and object lock on plain files.
    """
    requested = request.headers.get("x-amz-object-ownership")
    if requested is not None and requested not in OWNERSHIPS:
        raise InvalidArgument(ArgumentName="x-amz-object-ownership", ArgumentValue=requested)
    plain_files = services.store.of(store).tree is not None
    if plain_files and requested not in (None, ENFORCED):
        raise NotImplemented(Header="x-amz-object-ownership")
    if plain_files and lock:
        raise NotImplemented(Header=LOCK_ENABLED)
    ownership = ENFORCED if plain_files else requested or services.settings.default_object_ownership
    grants = await acls.acl_of_new_bucket(services, request) if acls.has_acl_headers(request) else None
    if grants is not None and ownership == ENFORCED:
        raise InvalidBucketAclWithObjectOwnership()
    if grants is not None and services.settings.default_public_access_block and any(one.public for one in grants):
        raise InvalidBucketAclWithBlockPublicAccessError()
    settings = initial_settings(services.settings, ownership, grants, plain_files=plain_files)
    more: dict[str, Any] = {SETTING: []} if lock else {}
    if request.bucket_tags:
        more[TAGS] = request.bucket_tags
    return orjson.dumps({**orjson.loads(settings or "{}"), **more}).decode() if more else settings


def _configuration(document: bytes) -> tuple[str, tags.Tags]:
    """Return the LocationConstraint of a configuration, empty for none, and its tags.

    Raises MalformedXML, NotImplemented, InvalidTag, BadRequest.
    """
    if not document.strip():
        return "", {}
    tree = xml.parse(document, "CreateBucketConfiguration")
    xml.check_children(tree, {"LocationConstraint", "Location", "Bucket", "Tags"})
    for name in ("Location", "Bucket"):
        if tree.find(name) is not None:
            raise NotImplemented()
    tagged = tree.findall("Tags")
    if len(tagged) > 1:
        raise MalformedXML()
    bucket_tags = tags.parse_element(tagged[0], tags.MAX_BUCKET) if tagged else {}
    return xml.child_text(tree, "LocationConstraint") or "", bucket_tags


def _store(services: Services, constraint: str) -> str:
    """Return the requested store: REGION, or REGION:STORE as in Ceph's gateway.

    Raises InvalidLocationConstraint for an unknown one.
    """
    region, named, store = (constraint or services.region).partition(":")
    if not services.regions.accepts(region) or (named and store not in services.store.all):
        raise InvalidLocationConstraint(LocationConstraint=constraint)
    return store or services.store.name


@operation("HEAD", "bucket", name="HeadBucket", action="s3:ListBucket")
async def head_bucket(services: Services, request: S3Request) -> Response:
    """Handle HeadBucket (https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html)."""
    region = services.regions.of(request.bucket_row)
    headers = [(b"x-amz-bucket-region", region.encode()), (b"x-amz-access-point-alias", b"false")]
    return Response(200, [*headers, (STORE, request.bucket_row.store.encode()), *XML])


@operation("DELETE", "bucket", name="DeleteBucket", action="s3:DeleteBucket")
async def delete_bucket(services: Services, request: S3Request) -> Response:
    """Handle DeleteBucket (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucket.html)."""
    bucket = request.bucket_row
    try:
        await delete(services.store.of(bucket.store), bucket)
    except domain.BucketNotEmpty:
        more = "The bucket you tried to delete is not empty. You must delete all versions in the bucket."
        raise BucketNotEmpty(more if bucket.versioning else None, BucketName=bucket.name) from None
    return Response(204)


@operation("GET", "bucket", "location", name="GetBucketLocation", action="s3:GetBucketLocation")
async def get_bucket_location(services: Services, request: S3Request) -> Response:
    """Handle GetBucketLocation (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLocation.html)."""
    region = services.regions.of(request.bucket_row)
    content = "" if region == OLD_REGION else xml.escape(region)
    return Response(200, list(XML), xml.document("LocationConstraint", content))
