"""Access control lists of buckets and objects, and ownership controls, which say whether ACLs are looked at.

In a bucket without ACLs (BucketOwnerEnforced) they can be read, and set to what holds anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.access.acl import FULL_CONTROL, Grant, Grants, to_json
from app.access.bucket_access import ACL, ENFORCED, OWNERSHIP, OWNERSHIPS, access_of
from app.s3 import acls, metadata, xml
from app.s3.body import document
from app.s3.dispatch import operation
from app.s3.errors import (
    AccessControlListNotSupported,
    InvalidBucketAclWithObjectOwnership,
    MalformedXML,
    NotImplemented,
    OwnershipControlsNotFoundError,
)
from app.s3.operations.object_read import find
from app.s3.operations.renewing import renew
from app.s3.request import S3Request
from app.s3.response import XML, Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

CALLED_BY = "Anonymous users cannot invoke this API. Please authenticate."
NOT_ANONYMOUS = " does not support Anonymous requests!"


@operation("GET", "bucket", "acl", name="GetBucketAcl", action="s3:GetBucketAcl")
async def get_bucket_acl(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketAcl.html"""
    access = access_of(request.bucket_row)
    grants = access.acl if access.has_acls else None
    return Response(200, list(XML), await acls.shown(gateway, request, request.bucket_row.owner_id, grants))


@operation("GET", "key", "acl", name="GetObjectAcl", action="s3:GetObjectAcl")
async def get_object_acl(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAcl.html"""
    version = await find(gateway, request)
    if access_of(request.bucket_row).has_acls:
        owner_id, grants = version.owner_id, metadata.grants(version.headers)
    else:
        owner_id, grants = request.bucket_row.owner_id, None
    return Response(200, list(XML), await acls.shown(gateway, request, owner_id, grants))


@operation("PUT", "bucket", "acl", name="PutBucketAcl", action="s3:PutBucketAcl", signed=CALLED_BY)
async def put_bucket_acl(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketAcl.html"""
    bucket = request.bucket_row
    grants = await _asked(gateway, request, bucket.owner_id)
    if access_of(bucket).has_acls:
        private = grants == (Grant(bucket.owner_id, FULL_CONTROL),)
        await gateway.index.configure_bucket(bucket.id, ACL, None if private else to_json(grants))
    return Response(200)


@operation("PUT", "key", "acl", name="PutObjectAcl", action="s3:PutObjectAcl", signed=CALLED_BY)
async def put_object_acl(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectAcl.html"""
    version = await find(gateway, request)
    has_acls = access_of(request.bucket_row).has_acls
    if has_acls and gateway.tree_of(request.bucket_row) is not None:
        raise NotImplemented()
    owner_id = version.owner_id if has_acls else request.bucket_row.owner_id
    grants = await _asked(gateway, request, owner_id)
    if has_acls:
        await renew(gateway, request, lambda old: metadata.renewed(old.headers, grants=grants))
    return Response(200)


async def _asked(gateway: Gateway, request: S3Request, owner_id: str) -> Grants:
    """The ACL that is to be set. Raises AccessControlListNotSupported unless ACLs are looked at or it holds anyway."""
    said = await document(request)
    access = access_of(request.bucket_row)
    if not access.has_acls:
        acls.check_held_anyway(request)
    grants = await acls.asked(gateway, request, said, owner_id, request.bucket_row.owner_id)
    if not access.has_acls and grants != (Grant(owner_id, FULL_CONTROL),):
        raise AccessControlListNotSupported()
    acls.check_public(access, grants)
    return grants


@operation(
    "PUT",
    "bucket",
    "ownershipControls",
    name="PutBucketOwnershipControls",
    action="s3:PutBucketOwnershipControls",
    signed="s3:PutBucketOwnershipControls" + NOT_ANONYMOUS,
)
async def put_bucket_ownership_controls(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketOwnershipControls.html"""
    bucket = request.bucket_row
    tree = xml.parse(await document(request), "OwnershipControls")
    xml.check_children(tree, {"Rule"})
    if len(tree) != 1:
        raise MalformedXML()
    xml.check_children(tree[0], {"ObjectOwnership"})
    ownership = xml.text_of(tree[0], "ObjectOwnership")
    if ownership not in OWNERSHIPS:
        raise MalformedXML()
    if ownership == ENFORCED and access_of(bucket).acl is not None:
        raise InvalidBucketAclWithObjectOwnership()
    if ownership != ENFORCED and gateway.tree_of(bucket) is not None:
        raise NotImplemented()  # what others make has no ACL
    await gateway.index.configure_bucket(bucket.id, OWNERSHIP, None if ownership == ENFORCED else ownership)
    return Response(200)


@operation(
    "GET",
    "bucket",
    "ownershipControls",
    name="GetBucketOwnershipControls",
    action="s3:GetBucketOwnershipControls",
    signed="s3:GetBucketOwnershipControls" + NOT_ANONYMOUS,
)
async def get_bucket_ownership_controls(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketOwnershipControls.html"""
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
    signed="s3:PutBucketOwnershipControls" + NOT_ANONYMOUS,
)
async def delete_bucket_ownership_controls(gateway: Gateway, request: S3Request) -> Response:
    """Without them ACLs hold, as in a bucket of before there were ownership controls.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketOwnershipControls.html
    """
    if gateway.tree_of(request.bucket_row) is not None:
        raise NotImplemented()
    await gateway.index.configure_bucket(request.bucket_row.id, OWNERSHIP, "")
    return Response(204)
