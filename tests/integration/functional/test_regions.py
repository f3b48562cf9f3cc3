"""boto3 with a client of another region than the gateway's, and a gateway that takes any."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.identities import service
from tests.integration.functional.test_objects import code_of
from tests.support.gateway import Gateway, client

LARGE = 6 << 20
"""More than one part of an upload of boto3's."""


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """In eu-west-1, with the bucket `bkt` and the object `key`."""
    directory = tmp_path_factory.mktemp("fixed")
    with Gateway(directory / "data", workers=1, env={"SLUICE_REGION": "eu-west-1"}) as running:
        s3 = client(running.endpoint, region="eu-west-1")
        s3.create_bucket(Bucket="bkt", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        s3.put_object(Bucket="bkt", Key="key", Body=b"body")
        yield running


@pytest.fixture(scope="module")
def anywhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One that takes any region."""
    directory = tmp_path_factory.mktemp("anywhere")
    with Gateway(directory / "data", workers=1, env={"SLUICE_REGION": "auto"}) as running:
        yield running


def download(s3: Any) -> bytes:
    found = io.BytesIO()
    s3.download_fileobj("bkt", "key", found)
    return found.getvalue()


CALLS: dict[str, Callable[[Any], Any]] = {
    "head_bucket": lambda s3: s3.head_bucket(Bucket="bkt")["BucketRegion"] == "eu-west-1",
    "head_object": lambda s3: s3.head_object(Bucket="bkt", Key="key")["ContentLength"] == 4,
    "get_object": lambda s3: s3.get_object(Bucket="bkt", Key="key")["Body"].read() == b"body",
    "download_file": lambda s3: download(s3) == b"body",
    "upload_file": lambda s3: s3.upload_fileobj(io.BytesIO(bytes(LARGE)), "bkt", "large") is None,
    "list_objects_v2": lambda s3: s3.list_objects_v2(Bucket="bkt", Prefix="key")["KeyCount"] == 1,
    "put_object": lambda s3: s3.put_object(Bucket="bkt", Key="new", Body=io.BytesIO(b"x"))["ETag"],
    "copy_object": lambda s3: s3.copy_object(Bucket="bkt", Key="copy", CopySource="bkt/key")["CopyObjectResult"],
    "get_bucket_location": lambda s3: s3.get_bucket_location(Bucket="bkt")["LocationConstraint"] == "eu-west-1",
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("region", ["eu-central-1", "us-east-1"])
def test_a_client_of_another_region_is_redirected(fixed: Gateway, region: str, call: str) -> None:
    assert CALLS[call](client(fixed.endpoint, region=region))


def test_what_is_not_there_is_not_there_for_a_client_of_another_region(fixed: Gateway) -> None:
    s3 = client(fixed.endpoint, region="eu-central-1")
    with pytest.raises(ClientError) as error:
        s3.head_object(Bucket="bkt", Key="missing")
    assert code_of(error)[0] == 404


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1", "auto"])
def test_any_region_signs(anywhere: Gateway, region: str) -> None:
    s3 = client(anywhere.endpoint, region=region)
    name = f"of-{region}"
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": region})
    s3.upload_fileobj(io.BytesIO(bytes(LARGE)), name, "large")
    for other in ("us-west-2", "x"):
        s3 = client(anywhere.endpoint, region=other, signature_version="s3v4")
        assert s3.head_object(Bucket=name, Key="large")["ContentLength"] == LARGE
        assert s3.head_bucket(Bucket=name)["BucketRegion"] == region
        told = s3.get_bucket_location(Bucket=name)["LocationConstraint"]
        assert told == (None if region == "us-east-1" else region)
        url = s3.generate_presigned_url("get_object", {"Bucket": name, "Key": "large"})
        assert httpx.get(url).status_code == 200
        form = s3.generate_presigned_post(name, "form")
        assert httpx.post(form["url"], data=form["fields"], files={"file": b"x"}).status_code == 204
        assert [one["Name"] for one in s3.list_buckets(BucketRegion=region)["Buckets"]] == [name]
    sts = service(anywhere, "sts", region=region)
    assert sts.get_caller_identity()["Account"]


def test_a_bucket_without_a_constraint_is_in_the_first_region(anywhere: Gateway) -> None:
    s3 = client(anywhere.endpoint, region="us-east-1")
    s3.create_bucket(Bucket="plain")
    s3 = client(anywhere.endpoint, region="eu-north-1")
    assert s3.head_bucket(Bucket="plain")["BucketRegion"] == "us-east-1"
    assert s3.create_bucket(Bucket="plain", CreateBucketConfiguration={"LocationConstraint": "us-east-1:default"})
    for constraint in ("eu-west-1:nowhere", "eu/west", "e" * 65, ":default"):
        with pytest.raises(ClientError) as error:
            s3.create_bucket(Bucket="other", CreateBucketConfiguration={"LocationConstraint": constraint})
        assert code_of(error) == (400, "InvalidLocationConstraint")
