"""Inventories of buckets: Put, Get, List and DeleteBucketInventoryConfiguration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.errors import (
    InvalidBucketName,
    InvalidConfigurationId,
    InvalidS3DestinationBucket,
    NoSuchBucket,
    NoSuchConfiguration,
    TooManyConfigurations,
)
from sluice_s3.app.s3.inventory import xml as configuration
from sluice_s3.app.s3.inventory.xml import Inventory, inventories_of
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire import query_parameters, xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

ROOT = configuration.ROOT
PUT, GET = "s3:PutInventoryConfiguration", "s3:GetInventoryConfiguration"


@operation("PUT", "bucket", "inventory", name="PutBucketInventoryConfiguration", action=PUT)
async def put_bucket_inventory(services: Services, request: S3Request) -> Response:
    """Handle PutBucketInventoryConfiguration.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketInventoryConfiguration.html
    """
    bucket: Bucket = request.bucket_row
    found = configuration.parse_inventory(await read_document(request), _id(request))
    try:
        destination = await services.bucket(found.bucket)
    except (NoSuchBucket, InvalidBucketName):
        raise InvalidS3DestinationBucket("The destination bucket does not exist.") from None
    if services.regions.are_apart(destination, bucket):
        raise InvalidS3DestinationBucket("The destination bucket must be in the same region.")
    if found.encryption:
        await encryption.require_possible(services, destination)
    inventories = inventories_of(bucket)
    if found.id not in inventories and len(inventories) >= configuration.MAX_CONFIGURATIONS:
        raise TooManyConfigurations()
    await _change(services, bucket, found.id, found)
    return Response(200)


@operation("GET", "bucket", "inventory", name="GetBucketInventoryConfiguration", action=GET)
async def get_bucket_inventory(services: Services, request: S3Request) -> Response:
    """Handle GetBucketInventoryConfiguration.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketInventoryConfiguration.html
    """
    inventories = inventories_of(request.bucket_row)
    if "id" not in request.query:
        return _list(request, inventories)
    if _id(request) not in inventories:
        raise NoSuchConfiguration()
    return Response(200, list(XML), xml.document(ROOT, configuration.render_inventory(inventories[_id(request)])))


def _list(request: S3Request, inventories: dict[str, Inventory]) -> Response:
    """Handle ListBucketInventoryConfigurations.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListBucketInventoryConfigurations.html
    """
    request.operation = "ListBucketInventoryConfigurations"
    token = request.query.get("continuation-token")
    after = query_parameters.decode_continuation_token(token) if token else ""
    names = [name for name in inventories if name > after]
    page = names[: configuration.PAGE_CONFIGURATIONS]
    content = "".join(f"<{ROOT}>{configuration.render_inventory(inventories[name])}</{ROOT}>" for name in page)
    content += xml.optional("ContinuationToken", token)
    content += xml.element("IsTruncated", str(len(names) > len(page)).lower())
    if len(names) > len(page):
        content += xml.element("NextContinuationToken", query_parameters.encode_continuation_token(page[-1]))
    return Response(200, list(XML), xml.document("ListInventoryConfigurationsResult", content))


@operation("DELETE", "bucket", "inventory", name="DeleteBucketInventoryConfiguration", action=PUT)
async def delete_bucket_inventory(services: Services, request: S3Request) -> Response:
    """Handle DeleteBucketInventoryConfiguration.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketInventoryConfiguration.html
    """
    if _id(request) not in inventories_of(request.bucket_row):
        raise NoSuchConfiguration()
    await _change(services, request.bucket_row, _id(request), None)
    return Response(204)


def _id(request: S3Request) -> str:
    name = request.query.get("id")
    if not name:
        raise InvalidConfigurationId()
    return name


async def _change(services: Services, bucket: Bucket, name: str, new: Inventory | None) -> None:
    """Store or remove one configuration, without losing concurrent changes of others."""

    def change(configurations: dict[str, Any] | None) -> dict[str, Any] | None:
        remaining = {identifier: one for identifier, one in (configurations or {}).items() if identifier != name}
        return (remaining if new is None else {**remaining, name: list(new)}) or None

    await services.index.configure_bucket(bucket.id, configuration.SETTING, change)
