"""Who pays for requests: PutBucketRequestPayment, GetBucketRequestPayment.

Nothing is billed here. What a bucket of the kind *Requester* asks of requests is enforced: see `rights`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.access.bucket_access import PAYER, REQUESTER, access_of
from app.s3 import xml
from app.s3.body import document
from app.s3.dispatch import operation
from app.s3.errors import MalformedXML
from app.s3.request import S3Request
from app.s3.response import XML, Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

ROOT = "RequestPaymentConfiguration"
OWNER = "BucketOwner"


@operation("PUT", "bucket", "requestPayment", name="PutBucketRequestPayment", action="s3:PutBucketRequestPayment")
async def put_bucket_request_payment(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketRequestPayment.html"""
    tree = xml.parse(await document(request), ROOT)
    xml.check_children(tree, {"Payer"})
    payer = xml.text_of(tree, "Payer")
    if payer not in (OWNER, REQUESTER):
        raise MalformedXML()
    await gateway.index.configure_bucket(request.bucket_row.id, PAYER, None if payer == OWNER else payer)
    return Response(200)


@operation("GET", "bucket", "requestPayment", name="GetBucketRequestPayment", action="s3:GetBucketRequestPayment")
async def get_bucket_request_payment(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketRequestPayment.html"""
    payer = REQUESTER if access_of(request.bucket_row).requester_pays else OWNER
    return Response(200, list(XML), xml.document(ROOT, xml.element("Payer", payer)))
