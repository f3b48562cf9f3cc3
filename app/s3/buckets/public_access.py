"""Public access blocks: PutPublicAccessBlock, GetPublicAccessBlock, DeletePublicAccessBlock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.access.bucket_access import BLOCK, Block, access_of
from sluice_s3.app.s3.errors import MalformedXML, NoSuchPublicAccessBlockConfiguration
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

ROOT = "PublicAccessBlockConfiguration"
NAMES = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
"""In the order of the fields of `Block`."""
TRUTH = {"true": True, "false": False, None: False}


@operation("PUT", "bucket", "publicAccessBlock", name="PutPublicAccessBlock", action="s3:PutBucketPublicAccessBlock")
async def put_public_access_block(services: Services, request: S3Request) -> Response:
    """Handle PutPublicAccessBlock (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutPublicAccessBlock.html)."""
    tree = xml.parse(await read_document(request), ROOT)
    xml.check_children(tree, set(NAMES))
    texts = [xml.child_text(tree, name) for name in NAMES]
    try:
        block = Block(*(TRUTH[None if text is None else text.strip().lower()] for text in texts))
    except KeyError:
        raise MalformedXML() from None
    await services.index.configure_bucket(request.bucket_row.id, BLOCK, list(block))
    return Response(200)


@operation("GET", "bucket", "publicAccessBlock", name="GetPublicAccessBlock", action="s3:GetBucketPublicAccessBlock")
async def get_public_access_block(services: Services, request: S3Request) -> Response:
    """Handle GetPublicAccessBlock (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetPublicAccessBlock.html)."""
    access = access_of(request.bucket_row)
    if not access.has_block:
        raise NoSuchPublicAccessBlockConfiguration(BucketName=request.bucket)
    pairs = zip(NAMES, access.block, strict=True)
    content = "".join(xml.element(name, str(value).lower()) for name, value in pairs)
    return Response(200, list(XML), xml.document(ROOT, content))


@operation(
    "DELETE", "bucket", "publicAccessBlock", name="DeletePublicAccessBlock", action="s3:PutBucketPublicAccessBlock"
)
async def delete_public_access_block(services: Services, request: S3Request) -> Response:
    """Handle DeletePublicAccessBlock.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeletePublicAccessBlock.html
    """
    await services.index.configure_bucket(request.bucket_row.id, BLOCK, [])
    return Response(204)
