"""What AWS answers about encryption: keys that are missing or wrong, headers that are, and defaults of buckets."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.sealed import (
    MODES,
    OTHER_SECRET,
    SECRET,
    arn,
    body_of,
    bucket,
    configuration,
    customer,
    keys,
    spelled,
)
from tests.integration.functional.test_policy import put as put_policy
from tests.integration.functional.test_policy import statement
from tests.integration.functional.test_versioning import refused
from tests.support.gateway import Gateway, client

pytestmark = pytest.mark.place("tree")

__all__ = ["bucket", "keys"]


def test_a_customers_key_is_wanted(s3: Any, bucket: str) -> None:
    right, wrong = customer(SECRET), customer(OTHER_SECRET)
    s3.put_object(Bucket=bucket, Key="c", Body=b"body", **right)
    s3.put_object(Bucket=bucket, Key="p", Body=b"body")
    s3.put_object(Bucket=bucket, Key="s", Body=b"body", ServerSideEncryption="AES256")
    attributes = {"ObjectAttributes": ["ETag"]}
    for call, more in ((s3.get_object, {}), (s3.get_object_attributes, attributes)):
        refused(call, 400, "InvalidRequest", Bucket=bucket, Key="c", **more)
        refused(call, 403, "AccessDenied", Bucket=bucket, Key="c", **spelled(wrong), **more)
        for key in "ps":
            refused(call, 400, "InvalidRequest", Bucket=bucket, Key=key, **spelled(right), **more)
    refused(s3.head_object, 400, "400", Bucket=bucket, Key="c")
    refused(s3.head_object, 403, "403", Bucket=bucket, Key="c", **wrong)
    source = {"Bucket": bucket, "Key": "c"}
    refused(s3.copy_object, 400, "InvalidRequest", Bucket=bucket, Key="d", CopySource=source)
    other = {f"CopySource{name}": value for name, value in wrong.items()}
    refused(s3.copy_object, 403, "AccessDenied", Bucket=bucket, Key="d", CopySource=source, **other)
    s3.delete_object(Bucket=bucket, Key="c")  # needs none


def test_an_upload_wants_the_key_that_it_was_begun_with(s3: Any, bucket: str) -> None:
    right, wrong = customer(SECRET), customer(OTHER_SECRET)
    for begun, sent in ((right, {}), (right, wrong), ({}, right)):
        upload = s3.create_multipart_upload(Bucket=bucket, Key="k", **begun)["UploadId"]
        place = {"Bucket": bucket, "Key": "k", "UploadId": upload, "PartNumber": 1}
        refused(s3.upload_part, 400, "InvalidRequest", **place, Body=b"x", **sent)


def test_complete_wants_the_key_only_with_a_checksum_algorithm(s3: Any, bucket: str) -> None:
    right = customer(SECRET)
    for algorithm in ({}, {"ChecksumAlgorithm": "CRC32"}):
        upload = s3.create_multipart_upload(Bucket=bucket, Key="k", **right, **algorithm)
        place = {"Bucket": bucket, "Key": "k", "UploadId": upload["UploadId"]}
        part = s3.upload_part(**place, PartNumber=1, Body=b"x", **right, **algorithm)
        sums = {"ChecksumCRC32": part["ChecksumCRC32"]} if algorithm else {}
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"], **sums}]}
        begun = "ChecksumAlgorithm" in upload
        if begun:
            refused(s3.complete_multipart_upload, 400, "InvalidRequest", **place, MultipartUpload=parts)
        s3.complete_multipart_upload(**place, MultipartUpload=parts, **(right if begun else {}))


HEADERS: dict[str, tuple[dict[str, str], str]] = {
    "both": ({"": "AES256", "-customer-algorithm": "AES256"}, "InvalidArgument"),
    "unknown method": ({"": "AES512"}, "InvalidArgument"),
    "no method": ({"": ""}, "InvalidArgument"),
    "key id without kms": ({"": "AES256", "-aws-kms-key-id": "one"}, "InvalidArgument"),
    "key id alone": ({"-aws-kms-key-id": "one"}, "InvalidArgument"),
    "unknown key": ({"": "aws:kms", "-aws-kms-key-id": "none"}, "KMS.NotFoundException"),
    "unknown alias": ({"": "aws:kms", "-aws-kms-key-id": "alias/none"}, "KMS.NotFoundException"),
    "alias without its name": ({"": "aws:kms", "-aws-kms-key-id": "aws/s3"}, "KMS.NotFoundException"),
    "the gateway's own key": ({"": "aws:kms", "-aws-kms-key-id": "sse-s3"}, "KMS.NotFoundException"),
    "key elsewhere": ({"": "aws:kms", "-aws-kms-key-id": arn("one").replace("east", "west")}, "KMS.NotFoundException"),
    "key of another": (
        {"": "aws:kms", "-aws-kms-key-id": arn("one").replace("0:key", "1:key")},
        "KMS.NotFoundException",
    ),
    "bucket key alone": ({"-bucket-key-enabled": "maybe"}, "InvalidArgument"),
    "key id beside a customer's": ({"-customer-algorithm": "AES256", "-aws-kms-key-id": "one"}, "InvalidArgument"),
    "bucket key": ({"": "aws:kms", "-bucket-key-enabled": "maybe"}, "InvalidArgument"),
    "customer's algorithm": ({"-customer-algorithm": "AES128"}, "InvalidEncryptionAlgorithmError"),
    "no algorithm": ({"-customer-key": "x", "-customer-key-md5": "x"}, "InvalidArgument"),
    "no key": ({"-customer-algorithm": "AES256"}, "InvalidArgument"),
    "no base64": ({"-customer-algorithm": "AES256", "-customer-key": "é", "-customer-key-md5": "x"}, "InvalidArgument"),
    "wrong sum": (
        {"-customer-algorithm": "AES256", "-customer-key": base64.b64encode(SECRET).decode(), "-customer-key-md5": "x"},
        "InvalidArgument",
    ),
    "short key": (
        {
            "-customer-algorithm": "AES256",
            "-customer-key": base64.b64encode(SECRET[:16]).decode(),
            "-customer-key-md5": base64.b64encode(hashlib.md5(SECRET[:16]).digest()).decode(),
        },
        "InvalidArgument",
    ),
}


@pytest.mark.parametrize("name", HEADERS)
def test_wrong_headers(gateway: Gateway, s3: Any, bucket: str, name: str) -> None:
    headers, code = HEADERS[name]
    with adding(client(gateway.endpoint), headers) as wrong:
        refused(wrong.put_object, 400, code, Bucket=bucket, Key="k", Body=b"x")
        refused(wrong.create_multipart_upload, 400, code, Bucket=bucket, Key="k")
        assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


@pytest.mark.parametrize("name", ["", "-aws-kms-key-id", "-bucket-key-enabled", "-context", "-foo", "-customer-foo"])
def test_headers_that_nothing_is_done_with(gateway: Gateway, s3: Any, bucket: str, name: str) -> None:
    status, code = (501, "NotImplemented") if "foo" in name else (400, "InvalidArgument")
    place = {"Bucket": bucket, "Key": "k"}
    s3.put_object(**place, Body=b"body")
    part = {**place, "UploadId": s3.create_multipart_upload(**place)["UploadId"], "PartNumber": 1}
    with adding(client(gateway.endpoint), {name: "true"}) as adder:
        refused(adder.get_object, status, code, **place)
        refused(adder.head_object, status, str(status), **place)
        refused(adder.upload_part, status, code, **part, Body=b"x")
        if status == 501:
            refused(adder.put_object, status, code, **place, Body=b"x")
    assert s3.get_object(**place)["Body"].read() == b"body"


class adding:
    """A client whose writes and reads of objects have these headers too."""

    def __init__(self, s3: Any, headers: dict[str, str]) -> None:
        self._s3 = s3
        self._headers = {f"x-amz-server-side-encryption{name}": value for name, value in headers.items()}

    def _add(self, params: Any, **_: Any) -> None:
        params["headers"].update(self._headers)

    def __enter__(self) -> Any:
        for operation in (
            "PutObject",
            "CreateMultipartUpload",
            "GetObject",
            "HeadObject",
            "UploadPart",
            "DeleteObject",
            "ListObjects",
            "ListObjectsV2",
        ):
            self._s3.meta.events.register(f"before-call.s3.{operation}", self._add)
        return self._s3

    def __exit__(self, *_: object) -> None:
        self._s3.close()


def test_headers_of_new_objects_on_other_operations(gateway: Gateway, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", ServerSideEncryption="AES256")
    upload = s3.create_multipart_upload(Bucket=bucket, Key="k", ServerSideEncryption="AES256")["UploadId"]
    with adding(client(gateway.endpoint), {"": "AES256"}) as told:
        refused(told.get_object, 400, "InvalidArgument", Bucket=bucket, Key="k")
        refused(told.head_object, 400, "400", Bucket=bucket, Key="k")
        place = {"Bucket": bucket, "Key": "k", "UploadId": upload, "PartNumber": 1}
        refused(told.upload_part, 400, "InvalidArgument", **place, Body=b"x")
        refused(told.delete_object, 501, "NotImplemented", Bucket=bucket, Key="k")
        # s3fs-fuse tries without it only when it is told the name
        for list_objects in (told.list_objects, told.list_objects_v2):
            with pytest.raises(ClientError) as error:
                list_objects(Bucket=bucket)
            assert error.value.response["Error"]["Code"] == "InvalidArgument"
            assert error.value.response["Error"]["ArgumentName"] == "x-amz-server-side-encryption"


def test_a_listing_needs_no_key_of_a_customer(gateway: Gateway, s3: Any, bucket: str) -> None:
    sealed = spelled(customer(SECRET))
    names = {"SSECustomerAlgorithm": "algorithm", "SSECustomerKey": "key", "SSECustomerKeyMD5": "key-md5"}
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", **customer(SECRET))
    with adding(client(gateway.endpoint), {f"-customer-{names[name]}": sealed[name] for name in names}) as told:
        for list_objects in (told.list_objects, told.list_objects_v2):
            assert [found["Key"] for found in list_objects(Bucket=bucket)["Contents"]] == ["k"]


def test_an_encryption_context_is_refused(s3: Any, bucket: str) -> None:
    context = base64.b64encode(b'{"a": "b"}').decode()
    options = {"ServerSideEncryption": "aws:kms", "SSEKMSEncryptionContext": context}
    refused(s3.put_object, 501, "NotImplemented", Bucket=bucket, Key="k", Body=b"x", **options)


def test_kms_wants_a_signature_of_version_4(gateway: Gateway, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", **MODES["kms"].write)
    s3.put_object(Bucket=bucket, Key="s", Body=b"x", **MODES["s3"].write)
    old = client(gateway.endpoint, signature_version="s3")
    refused(old.get_object, 400, "InvalidArgument", Bucket=bucket, Key="k")
    refused(old.put_object, 400, "InvalidArgument", Bucket=bucket, Key="k", Body=b"x", **MODES["kms"].write)
    assert old.get_object(Bucket=bucket, Key="s")["Body"].read() == b"x"


# defaults of buckets
def test_defaults(s3: Any, bucket: str) -> None:
    refused(s3.get_bucket_encryption, 404, "ServerSideEncryptionConfigurationNotFoundError", Bucket=bucket)
    for method, more in (
        ("AES256", {"BucketKeyEnabled": False}),
        ("aws:kms", {"key": arn("one"), "BucketKeyEnabled": True}),
        ("aws:kms", {"BucketKeyEnabled": False}),
    ):
        wanted = configuration(method, **more)
        s3.put_bucket_encryption(Bucket=bucket, **wanted)
        got = s3.get_bucket_encryption(Bucket=bucket)
        assert got["ServerSideEncryptionConfiguration"] == wanted["ServerSideEncryptionConfiguration"]
        body = body_of(100)
        made = s3.put_object(Bucket=bucket, Key="k", Body=body)
        assert made["ServerSideEncryption"] == method
        assert made.get("SSEKMSKeyId") == (arn("one" if "key" in more else "aws-s3") if method == "aws:kms" else None)
        told = s3.get_object(Bucket=bucket, Key="k")
        assert (told["Body"].read(), told.get("BucketKeyEnabled", False)) == (body, more["BucketKeyEnabled"])
        upload = s3.create_multipart_upload(Bucket=bucket, Key="m")
        assert upload["ServerSideEncryption"] == method
        # a request goes over it
        assert s3.put_object(Bucket=bucket, Key="k", Body=body, **MODES["s3"].write)["ServerSideEncryption"] == "AES256"
        assert "ServerSideEncryption" not in s3.put_object(Bucket=bucket, Key="k", Body=body, **customer(SECRET))
    s3.delete_bucket_encryption(Bucket=bucket)
    s3.delete_bucket_encryption(Bucket=bucket)
    refused(s3.get_bucket_encryption, 404, "ServerSideEncryptionConfigurationNotFoundError", Bucket=bucket)
    assert "ServerSideEncryption" not in s3.put_object(Bucket=bucket, Key="k", Body=b"x")


def test_a_copy_follows_the_default_of_its_bucket(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", **MODES["customer"].write)
    source = {"Bucket": bucket, "Key": "k"}
    s3.copy_object(Bucket=bucket, Key="c", CopySource=source, **MODES["customer"].copy)
    assert "ServerSideEncryption" not in s3.get_object(Bucket=bucket, Key="c")
    s3.put_bucket_encryption(Bucket=bucket, **configuration("AES256"))
    s3.copy_object(Bucket=bucket, Key="c", CopySource=source, **MODES["customer"].copy)
    assert s3.get_object(Bucket=bucket, Key="c")["ServerSideEncryption"] == "AES256"


def test_customers_keys_can_be_blocked(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", **customer(SECRET))
    upload = s3.create_multipart_upload(Bucket=bucket, Key="m", **customer(SECRET))["UploadId"]
    blocked = configuration("AES256", BlockedEncryptionTypes={"EncryptionType": ["SSE-C"]})
    s3.put_bucket_encryption(Bucket=bucket, **blocked)
    refused(s3.put_object, 403, "AccessDenied", Bucket=bucket, Key="n", Body=b"x", **customer(SECRET))
    place = {"Bucket": bucket, "Key": "m", "UploadId": upload, "PartNumber": 1}
    refused(s3.upload_part, 403, "AccessDenied", **place, Body=b"x", **customer(SECRET))
    assert s3.get_object(Bucket=bucket, Key="k", **customer(SECRET))["Body"].read() == b"x"
    s3.put_bucket_encryption(Bucket=bucket, **configuration("AES256"))  # says nothing of it
    refused(s3.put_object, 403, "AccessDenied", Bucket=bucket, Key="n", Body=b"x", **customer(SECRET))
    rule = {"BlockedEncryptionTypes": {"EncryptionType": ["NONE"]}}
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
    s3.put_object(Bucket=bucket, Key="n", Body=b"x", **customer(SECRET))
    assert s3.put_object(Bucket=bucket, Key="k", Body=b"x")["ServerSideEncryption"] == "AES256"


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ([], "MalformedXML"),
        ([{}], "MalformedXML"),
        ([{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}] * 2, "MalformedXML"),
        ([{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES512"}}], "MalformedXML"),
        (
            [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256", "KMSMasterKeyID": "x"}}],
            "InvalidArgument",
        ),
        ([{"BlockedEncryptionTypes": {"EncryptionType": ["SSE-S3"]}}], "MalformedXML"),
    ],
)
def test_wrong_defaults(s3: Any, bucket: str, rules: list[Any], code: str) -> None:
    wanted = {"ServerSideEncryptionConfiguration": {"Rules": rules}}
    refused(s3.put_bucket_encryption, 400, code, Bucket=bucket, **wanted)


def test_policies_can_demand_it(s3: Any, bucket: str) -> None:
    missing = {"Null": {"s3:x-amz-server-side-encryption": "true"}}
    other = {"StringNotEquals": {"s3:x-amz-server-side-encryption-aws-kms-key-id": arn("one")}}
    statements = [statement(bucket, "s3:PutObject", Effect="Deny", Condition=one) for one in (missing, other)]
    put_policy(s3, bucket, *statements)
    refused(s3.put_object, 403, "AccessDenied", Bucket=bucket, Key="k", Body=b"x")
    refused(s3.put_object, 403, "AccessDenied", Bucket=bucket, Key="k", Body=b"x", **MODES["s3"].write)
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", **MODES["kms"].write)
