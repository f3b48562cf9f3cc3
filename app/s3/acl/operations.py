"""Access control lists of buckets and objects, and ownership controls, which enable ACLs.

In a bucket without ACLs (BucketOwnerEnforced) they can be read, and set to what applies anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.access.acl import FULL_CONTROL, Grant, Grants, to_json
from sluice_s3.app.access.bucket_access import ACL, ENFORCED, OWNERSHIP, OWNERSHIPS, access_of
from sluice_s3.app.s3.acl import grants as acls
from sluice_s3.app.s3.errors import (
    AccessControlListNotSupported,
    InvalidBucketAclWithObjectOwnership,
    MalformedXML,
    NotImplemented,
    OwnershipControlsNotFoundError,
)
from sluice_s3.app.s3.objects.find import find_version
from sluice_s3.app.s3.objects.update_headers import update_version_headers
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire import metadata, xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

CALLED_BY = "Anonymous users cannot invoke this API. Please authenticate."
NOT_ANONYMOUS = " does not support Anonymous requests!"


@operation("GET", "bucket", "acl", name="GetBucketAcl", action="s3:GetBucketAcl")
async def get_bucket_acl(services: Services, request: S3Request) -> Response:
    """Handle GetBucketAcl (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketAcl.html)."""
    access = access_of(request.bucket_row)
    grants = access.acl if access.has_acls else None
    return Response(200, list(XML), await acls.render_acl(services, request, request.bucket_row.owner_id, grants))


@operation("GET", "key", "acl", name="GetObjectAcl", action="s3:GetObjectAcl")
async def get_object_acl(services: Services, request: S3Request) -> Response:
    """Handle GetObjectAcl (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAcl.html)."""
    version = await find_version(services, request)
    if access_of(request.bucket_row).has_acls:
        owner_id, grants = version.owner_id, metadata.grants(version.headers)
    else:
        owner_id, grants = request.bucket_row.owner_id, None
    return Response(200, list(XML), await acls.render_acl(services, request, owner_id, grants))


@operation("PUT", "bucket", "acl", name="PutBucketAcl", action="s3:PutBucketAcl", anonymous_error=CALLED_BY)
async def put_bucket_acl(services: Services, request: S3Request) -> Response:
    """Handle PutBucketAcl (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketAcl.html)."""
    bucket = request.bucket_row
    grants = await _parse_acl(services, request, bucket.owner_id)
    if access_of(bucket).has_acls:
        private = grants == (Grant(bucket.owner_id, FULL_CONTROL),)
        await services.index.configure_bucket(bucket.id, ACL, None if private else to_json(grants))
    return Response(200)


@operation("PUT", "key", "acl", name="PutObjectAcl", action="s3:PutObjectAcl", anonymous_error=CALLED_BY)
async def put_object_acl(services: Services, request: S3Request) -> Response:
    """Handle PutObjectAcl (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectAcl.html)."""
    version = await find_version(services, request)
    has_acls = access_of(request.bucket_row).has_acls
    if has_acls and services.tree_of(request.bucket_row) is not None:
        raise NotImplemented()
    owner_id = version.owner_id if has_acls else request.bucket_row.owner_id
    grants = await _parse_acl(services, request, owner_id)
    if has_acls:
        await update_version_headers(services, request, lambda old: metadata.repack(old.headers, grants=grants))
    return Response(200)


async def _parse_acl(services: Services, request: S3Request, owner_id: str) -> Grants:
    """Return the requested ACL. Raises AccessControlListNotSupported if ACLs are off and it would change anything."""
    document = await read_document(request)
    access = access_of(request.bucket_row)
    if not access.has_acls:
        acls.require_bucket_owner_acl(request)
    grants = await acls.parse_requested_acl(services, request, document, owner_id, request.bucket_row.owner_id)
    if not access.has_acls and grants != (Grant(owner_id, FULL_CONTROL),):
        raise AccessControlListNotSupported()
    acls.reject_public_acl(access, grants)
    return grants


@operation(
    "PUT",
    "bucket",
    "ownershipControls",
    name="PutBucketOwnershipControls",
    action="s3:PutBucketOwnershipControls",
    anonymous_error="s3:PutBucketOwnershipControls" + NOT_ANONYMOUS,
)
async def put_bucket_ownership_controls(services: Services, request: S3Request) -> Response:
    """Handle PutBucketOwnershipControls.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketOwnershipControls.html
    """
    bucket = request.bucket_row
    tree = xml.parse(await read_document(request), "OwnershipControls")
    xml.check_children(tree, {"Rule"})
    if len(tree) != 1:
        raise MalformedXML()
    xml.check_children(tree[0], {"ObjectOwnership"})
    ownership = xml.child_text(tree[0], "ObjectOwnership")
    if ownership not in OWNERSHIPS:
        raise MalformedXML()
    if ownership == ENFORCED and access_of(bucket).acl is not None:
        raise InvalidBucketAclWithObjectOwnership()
    if ownership != ENFORCED and services.tree_of(bucket) is not None:
        raise NotImplemented()  # files of other programs have no ACL
    await services.index.configure_bucket(bucket.id, OWNERSHIP, None if ownership == ENFORCED else ownership)
    return Response(200)


@operation(
    "GET",
    "bucket",
    "ownershipControls",
    name="GetBucketOwnershipControls",
    action="s3:GetBucketOwnershipControls",
    anonymous_error="s3:GetBucketOwnershipControls" + NOT_ANONYMOUS,
)
async def get_bucket_ownership_controls(services: Services, request: S3Request) -> Response:
    """Handle GetBucketOwnershipControls.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketOwnershipControls.html
    """
    ownership = access_of(request.bucket_row).ownership
    if not ownership:
        raise OwnershipControlsNotFoundError(BucketName=request.bucket)
    content = f"<Rule>{xml.element('ObjectOwnership', ownership)}</Rule>"
    return Response(200, list(XML), xml.document("OwnershipControls", content))


@operation(
    "DELETE",
    "bucket",
    "ownershipControls",
    name="DeleteBucketOwnershipControls",
    action="s3:PutBucketOwnershipControls",
    anonymous_error="s3:PutBucketOwnershipControls" + NOT_ANONYMOUS,
)
async def delete_bucket_ownership_controls(services: Services, request: S3Request) -> Response:
    """Handle DeleteBucketOwnershipControls: ACLs then apply, as in older buckets without such controls.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketOwnershipControls.html
    """
    if services.tree_of(request.bucket_row) is not None:
        raise NotImplemented()
    await services.index.configure_bucket(request.bucket_row.id, OWNERSHIP, "")
    return Response(204)
