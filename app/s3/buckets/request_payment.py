"""Requester Pays: PutBucketRequestPayment, GetBucketRequestPayment.

Nothing is billed here. What a bucket with payer *Requester* requires of requests is enforced: see `authorization`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.access.bucket_access import PAYER, REQUESTER, access_of
from sluice_s3.app.s3.errors import MalformedXML
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

ROOT = "RequestPaymentConfiguration"
OWNER = "BucketOwner"


@operation("PUT", "bucket", "requestPayment", name="PutBucketRequestPayment", action="s3:PutBucketRequestPayment")
async def put_bucket_request_payment(services: Services, request: S3Request) -> Response:
    """Handle PutBucketRequestPayment.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketRequestPayment.html
    """
    tree = xml.parse(await read_document(request), ROOT)
    xml.check_children(tree, {"Payer"})
    payer = xml.child_text(tree, "Payer")
    if payer not in (OWNER, REQUESTER):
        raise MalformedXML()
    await services.index.configure_bucket(request.bucket_row.id, PAYER, None if payer == OWNER else payer)
    return Response(200)


@operation("GET", "bucket", "requestPayment", name="GetBucketRequestPayment", action="s3:GetBucketRequestPayment")
async def get_bucket_request_payment(services: Services, request: S3Request) -> Response:
    """Handle GetBucketRequestPayment.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketRequestPayment.html
    """
    payer = REQUESTER if access_of(request.bucket_row).requester_pays else OWNER
    return Response(200, list(XML), xml.document(ROOT, xml.element("Payer", payer)))
