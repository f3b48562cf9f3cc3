"""Default encryption of buckets: PutBucketEncryption, GetBucketEncryption, DeleteBucketEncryption."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from sluice_s3.app.access.bucket_access import ENCRYPTION
from sluice_s3.app.encryption.scheme import KMS, S3
from sluice_s3.app.s3.encryption.headers import DSSE, NO_DEFAULT, BucketEncryption, default_of, require_possible
from sluice_s3.app.s3.errors import (
    InvalidArgument,
    MalformedXML,
    NotImplemented,
    ServerSideEncryptionConfigurationNotFoundError,
)
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

ROOT = "ServerSideEncryptionConfiguration"
BY_DEFAULT = "ApplyServerSideEncryptionByDefault"
BLOCKED = "BlockedEncryptionTypes"
TRUTH = {"true": True, "false": False}
BLOCKS = {"NONE": False, "SSE-C": True}


@operation("PUT", "bucket", "encryption", name="PutBucketEncryption", action="s3:PutEncryptionConfiguration")
async def put_bucket_encryption(services: Services, request: S3Request) -> Response:
    """Handle PutBucketEncryption. As on AWS, the key's id is checked only by a PUT that uses it.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketEncryption.html
    """
    default = _parse(await read_document(request), default_of(request.bucket_row))
    if default.method:
        await require_possible(services, request.bucket_row)
    await services.index.configure_bucket(request.bucket_row.id, ENCRYPTION, list(default))
    return Response(200)


def _parse(body: bytes, before: BucketEncryption) -> BucketEncryption:
    """Parse the configuration.

    Raises MalformedXML, InvalidArgument, and NotImplemented for encryption in two layers.
    """
    tree = xml.parse(body, ROOT)
    xml.check_children(tree, {"Rule"})
    rules = tree.findall("Rule")
    if len(rules) != 1:
        raise MalformedXML()
    rule = rules[0]
    xml.check_children(rule, {BY_DEFAULT, "BucketKeyEnabled", BLOCKED})
    bucket_key = (xml.child_text(rule, "BucketKeyEnabled") or "false").strip()
    if bucket_key not in TRUTH:
        raise MalformedXML()
    blocks = rule.findall(BLOCKED)
    if len(blocks) > 1:
        raise MalformedXML()
    # a document without this element leaves it unchanged
    blocked = _blocked(blocks[0]) if blocks else before.blocked
    found = rule.findall(BY_DEFAULT)
    if len(found) > 1 or not (found or blocks):
        raise MalformedXML()
    method, key = _by_default(found[0]) if found else (before.method, before.key)
    return BucketEncryption(method, key, TRUTH[bucket_key], blocked)


def _blocked(element: Element) -> bool:
    xml.check_children(element, {"EncryptionType"})
    named = [(child.text or "").strip() for child in element]
    if len(named) != 1 or named[0] not in BLOCKS:
        raise MalformedXML()
    return BLOCKS[named[0]]


def _by_default(element: Element) -> tuple[str, str]:
    xml.check_children(element, {"SSEAlgorithm", "KMSMasterKeyID"})
    method, key = xml.child_text(element, "SSEAlgorithm"), xml.child_text(element, "KMSMasterKeyID")
    if method == DSSE:
        raise NotImplemented()
    if method not in (S3, KMS):
        raise MalformedXML()
    if key is not None and method == S3:
        raise InvalidArgument(
            "a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms or aws:kms:dsse",
            ArgumentName=BY_DEFAULT,
        )
    return method, (key or "").strip()


@operation("GET", "bucket", "encryption", name="GetBucketEncryption", action="s3:GetEncryptionConfiguration")
async def get_bucket_encryption(services: Services, request: S3Request) -> Response:
    """Handle GetBucketEncryption (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketEncryption.html)."""
    default = default_of(request.bucket_row)
    if default == NO_DEFAULT:
        raise ServerSideEncryptionConfigurationNotFoundError(BucketName=request.bucket)
    content = ""
    if default.method:
        fields = xml.optional("KMSMasterKeyID", default.key) + xml.element("SSEAlgorithm", default.method)
        content = f"<{BY_DEFAULT}>{fields}</{BY_DEFAULT}>"
    if default.blocked is not None:
        named = "SSE-C" if default.blocked else "NONE"
        content += f"<{BLOCKED}>{xml.element('EncryptionType', named)}</{BLOCKED}>"
    content += xml.element("BucketKeyEnabled", str(default.bucket_key).lower())
    return Response(200, list(XML), xml.document(ROOT, f"<Rule>{content}</Rule>"))


@operation("DELETE", "bucket", "encryption", name="DeleteBucketEncryption", action="s3:PutEncryptionConfiguration")
async def delete_bucket_encryption(services: Services, request: S3Request) -> Response:
    """Handle DeleteBucketEncryption.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketEncryption.html
    """
    await services.index.configure_bucket(request.bucket_row.id, ENCRYPTION, None)
    return Response(204)
