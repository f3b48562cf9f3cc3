"""Inventories of buckets: Put, Get, List and DeleteBucketInventoryConfiguration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.index.rows import Bucket
from app.s3 import encryption, parameters, xml
from app.s3.body import document
from app.s3.dispatch import operation
from app.s3.errors import InvalidBucketName, NoSuchBucket
from app.s3.inventory import configuration
from app.s3.inventory.configuration import Inventory, inventories_of
from app.s3.inventory.errors import (
    InvalidConfigurationId,
    InvalidS3DestinationBucket,
    NoSuchConfiguration,
    TooManyConfigurations,
)
from app.s3.request import S3Request
from app.s3.response import XML, Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

ROOT = configuration.ROOT
PUT, GET = "s3:PutInventoryConfiguration", "s3:GetInventoryConfiguration"


@operation("PUT", "bucket", "inventory", name="PutBucketInventoryConfiguration", action=PUT)
async def put_bucket_inventory(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketInventoryConfiguration.html"""
    bucket: Bucket = request.bucket_row
    found = configuration.parse(await document(request), _id(request))
    try:
        destination = await gateway.bucket(found.bucket)
    except (NoSuchBucket, InvalidBucketName):
        raise InvalidS3DestinationBucket("The destination bucket does not exist.") from None
    if destination.region != bucket.region:
        raise InvalidS3DestinationBucket("The destination bucket must be in the same region.")
    if found.encryption:
        await encryption.check_possible(gateway, destination)
    known = inventories_of(bucket)
    if found.id not in known and len(known) >= configuration.MAX:
        raise TooManyConfigurations()
    await _change(gateway, bucket, found.id, found)
    return Response(200)


@operation("GET", "bucket", "inventory", name="GetBucketInventoryConfiguration", action=GET)
async def get_bucket_inventory(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketInventoryConfiguration.html"""
    known = inventories_of(request.bucket_row)
    if "id" not in request.query:
        return _list(request, known)
    if _id(request) not in known:
        raise NoSuchConfiguration()
    return Response(200, list(XML), xml.document(ROOT, configuration.shown(known[_id(request)])))


def _list(request: S3Request, known: dict[str, Inventory]) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListBucketInventoryConfigurations.html"""
    request.operation = "ListBucketInventoryConfigurations"
    token = request.query.get("continuation-token")
    after = parameters.read_token(token) if token else ""
    names = [name for name in known if name > after]
    page = names[: configuration.PAGE]
    content = "".join(f"<{ROOT}>{configuration.shown(known[name])}</{ROOT}>" for name in page)
    content += xml.optional("ContinuationToken", token)
    content += xml.element("IsTruncated", str(len(names) > len(page)).lower())
    if len(names) > len(page):
        content += xml.element("NextContinuationToken", parameters.write_token(page[-1]))
    return Response(200, list(XML), xml.document("ListInventoryConfigurationsResult", content))


@operation("DELETE", "bucket", "inventory", name="DeleteBucketInventoryConfiguration", action=PUT)
async def delete_bucket_inventory(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketInventoryConfiguration.html"""
    if _id(request) not in inventories_of(request.bucket_row):
        raise NoSuchConfiguration()
    await _change(gateway, request.bucket_row, _id(request), None)
    return Response(204)


def _id(request: S3Request) -> str:
    name = request.query.get("id")
    if not name:
        raise InvalidConfigurationId()
    return name


async def _change(gateway: Gateway, bucket: Bucket, name: str, new: Inventory | None) -> None:
    """Keep one configuration, or forget it, whatever becomes of the others at the same time."""

    def changed(kept: dict[str, Any] | None) -> dict[str, Any] | None:
        others = {known: one for known, one in (kept or {}).items() if known != name}
        return (others if new is None else {**others, name: list(new)}) or None

    await gateway.index.configure_bucket(bucket.id, configuration.SETTING, changed)
