"""Ways to encrypt an object, and what tests of them share."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from typing import Any, NamedTuple

import pytest

from tests.integration.functional.test_versioning import refused
from tests.support.gateway import Gateway

KEYS = ("one", "two")
SECRET, OTHER_SECRET = bytes(range(32)), bytes(range(1, 33))
SIZES = (0, 1, 65_536, 65_537, 200_000, 1_300_000)
CHUNK = 65_536


def arn(key: str) -> str:
    return f"arn:aws:kms:us-east-1:000000000000:key/{key}"


def customer(secret: bytes) -> dict[str, Any]:
    return {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": secret}


def spelled(given: dict[str, Any]) -> dict[str, Any]:
    """The same for an operation that boto3 does not make the headers' values for."""
    if "SSECustomerKey" not in given:
        return given
    secret = given["SSECustomerKey"]
    text, md5 = (base64.b64encode(value).decode() for value in (secret, hashlib.md5(secret).digest()))
    return {**given, "SSECustomerKey": text, "SSECustomerKeyMD5": md5}


class Mode(NamedTuple):
    """What is said of the encryption of an object when it is written, read, and copied."""

    write: dict[str, Any]
    read: dict[str, Any] = {}
    copy: dict[str, Any] = {}
    opaque: bool = False


def _customers(secret: bytes) -> Mode:
    given = customer(secret)
    return Mode(given, given, {f"CopySource{name}": value for name, value in given.items()}, True)


MODES = {
    "plain": Mode({}),
    "s3": Mode({"ServerSideEncryption": "AES256"}),
    "kms": Mode({"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": arn("one")}, opaque=True),
    "kms of another key": Mode({"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "two"}, opaque=True),
    "kms of aws/s3": Mode({"ServerSideEncryption": "aws:kms"}, opaque=True),
    "customer": _customers(SECRET),
    "another customer": _customers(OTHER_SECRET),
}
SEALED = {name: mode for name, mode in MODES.items() if name != "plain"}


@pytest.fixture(scope="module")
def keys(gateway: Gateway) -> None:
    """The ring has the keys that are named here."""
    known = {one["key"] for one in json.loads(gateway.run("key", "list", "--json").stdout)}
    for key in set(KEYS) - known:
        gateway.run("key", "create", key)


@pytest.fixture
def bucket(request: pytest.FixtureRequest, s3: Any, bucket: str, keys: None) -> str:
    if "tree" in request.node.name:
        refused(s3.put_object, 501, "NotImplemented", Bucket=bucket, Key="k", Body=b"x", ServerSideEncryption="AES256")
        default = configuration("AES256")
        refused(s3.put_bucket_encryption, 501, "NotImplemented", Bucket=bucket, **default)
        pytest.skip("plain files are not encrypted")
    return bucket


def configuration(method: str, **more: Any) -> dict[str, Any]:
    key = {"KMSMasterKeyID": more.pop("key")} if "key" in more else {}
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": method, **key}, **more}
    return {"ServerSideEncryptionConfiguration": {"Rules": [rule]}}


def body_of(size: int) -> bytes:
    return os.urandom(size)


def md5(body: bytes) -> str:
    return f'"{hashlib.md5(body).hexdigest()}"'
