"""ACLs as they hold in every bucket here: the owner has FULL_CONTROL and nobody else anything."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from app.s3 import xml
from app.s3.body import Body
from app.s3.dispatch import operation
from app.s3.errors import MalformedACLError, NotImplemented
from app.s3.operations.object_read import find
from app.s3.refused import HELD_ANYWAY
from app.s3.request import S3Request
from app.s3.response import XML, Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

SCHEMA = "http://www.w3.org/2001/XMLSchema-instance"


@operation("GET", "bucket", "acl", name="GetBucketAcl", action="s3:GetBucketAcl")
async def get_bucket_acl(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketAcl.html"""
    return _owner_has_all(request)


@operation("GET", "key", "acl", name="GetObjectAcl", action="s3:GetObjectAcl")
async def get_object_acl(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAcl.html"""
    await find(gateway, request)
    return _owner_has_all(request)


@operation("PUT", "bucket", "acl", name="PutBucketAcl", action="s3:PutBucketAcl")
async def put_bucket_acl(gateway: Gateway, request: S3Request) -> Response:
    """Takes what holds anyway; any other ACL answers NotImplemented.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketAcl.html
    """
    await _check_holds(request)
    return Response(200)


@operation("PUT", "key", "acl", name="PutObjectAcl", action="s3:PutObjectAcl")
async def put_object_acl(gateway: Gateway, request: S3Request) -> Response:
    """Takes what holds anyway; any other ACL answers NotImplemented.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectAcl.html
    """
    await find(gateway, request)
    await _check_holds(request)
    return Response(200)


async def _check_holds(request: S3Request) -> None:
    document = await Body(request, checksum="", etag=False).collect()
    if not document.strip():
        if request.headers.get("x-amz-acl") not in HELD_ANYWAY:
            raise MalformedACLError()
        return
    tree = xml.parse(document, "AccessControlPolicy")
    grants = tree.findall("AccessControlList/Grant")
    if len(grants) != 1 or not _is_owners(grants[0], request.bucket_row.owner_id):
        raise NotImplemented()


def _is_owners(grant: Element, owner_id: str) -> bool:
    return grant.findtext("Grantee/ID") == owner_id and grant.findtext("Permission") == "FULL_CONTROL"


def _owner_has_all(request: S3Request) -> Response:
    person = xml.owner(*request.bucket_owner)
    grantee = person.removeprefix("<Owner>").removesuffix("</Owner>")
    grant = (
        f'<Grant><Grantee xmlns:xsi="{SCHEMA}" xsi:type="CanonicalUser">{grantee}</Grantee>'
        "<Permission>FULL_CONTROL</Permission></Grant>"
    )
    content = f"{person}<AccessControlList>{grant}</AccessControlList>"
    return Response(200, list(XML), xml.document("AccessControlPolicy", content))
