"""Several stores behind one gateway: where buckets lie, what is told of it, and copies between them."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.test_objects import code_of
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually
from tests.unit.store.stores import TOML

SMALL, LARGE = b"small " * 100, b"large " * 100_000
PART = b"p" * (5 << 20)


def files(data: Path) -> list[Path]:
    """What lies in a store."""
    return [path for path in (data / "data").glob("*/*") if path.suffix != ".journal"]


def configured(directory: Path, **env: str) -> Gateway:
    """A gateway with a settings file that names two stores, fast and slow."""
    config = directory / "sluice.toml"
    config.write_text(TOML.format(root=directory))
    env = {"SLUICE_CONFIG": str(config), "SLUICE_DISCARD_GRACE": "0", "SLUICE_ADMIN_TOKEN": "admin-token", **env}
    return Gateway(directory / "gateway", env=env, given=(), options=("--admin-port", "0"))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with configured(tmp_path_factory.mktemp("two")) as running:
        yield running


@pytest.fixture(scope="module")
def s3(two: Gateway) -> Any:
    return client(two.endpoint, region="eu-west-1")


@pytest.fixture(scope="module")
def root(two: Gateway) -> Path:
    return two.data.parent


def make(s3: Any, name: str, constraint: str | None) -> Any:
    """A bucket, and the headers of its making."""
    configuration = {} if constraint is None else {"CreateBucketConfiguration": {"LocationConstraint": constraint}}
    return s3.create_bucket(Bucket=name, **configuration)["ResponseMetadata"]["HTTPHeaders"]


def test_a_bucket_lies_where_it_was_asked_for(s3: Any, root: Path) -> None:
    assert make(s3, "by-default", None)["x-sluice-store"] == "fast"
    assert make(s3, "by-region", "eu-west-1")["x-sluice-store"] == "fast"
    headers = make(s3, "on-slow", "eu-west-1:slow")
    assert headers["x-sluice-store"] == "slow"
    assert headers["x-sluice-durability"] == "relaxed"
    told = s3.head_bucket(Bucket="on-slow")
    assert told["BucketRegion"] == "eu-west-1"
    assert told["ResponseMetadata"]["HTTPHeaders"]["x-sluice-store"] == "slow"
    assert "x-sluice-durability" not in s3.head_bucket(Bucket="by-default")["ResponseMetadata"]["HTTPHeaders"]
    for bucket in ("by-default", "on-slow"):
        assert s3.get_bucket_location(Bucket=bucket)["LocationConstraint"] == "eu-west-1"
    for bucket, here, other in (("by-default", "fast", "slow"), ("on-slow", "slow", "fast")):
        before = len(files(root / other))
        for name, body in (("small", SMALL), ("large", LARGE)):
            s3.put_object(Bucket=bucket, Key=name, Body=body)
            assert s3.get_object(Bucket=bucket, Key=name)["Body"].read() == body
            assert s3.get_object(Bucket=bucket, Key=name, Range="bytes=6-11")["Body"].read() == body[6:12]
        assert len(files(root / other)) == before
        assert len(files(root / here)) >= 2


@pytest.mark.parametrize("constraint", ["us-east-1", "us-east-1:slow", "eu-west-1:none", "eu-west-1:", "slow", ":slow"])
def test_what_is_no_location(s3: Any, constraint: str) -> None:
    with pytest.raises(ClientError) as error:
        make(s3, "nowhere", constraint)
    assert code_of(error) == (400, "InvalidLocationConstraint")


def test_copies_between_stores_are_bytes(s3: Any, root: Path) -> None:
    make(s3, "copy-from", "eu-west-1:fast")
    make(s3, "copy-to", "eu-west-1:slow")
    for name, body in (("small", SMALL), ("large", LARGE), ("empty", b"")):
        put = s3.put_object(Bucket="copy-from", Key=name, Body=body, Metadata={"a": "b"}, ContentType="text/x")
        copied = s3.copy_object(Bucket="copy-to", Key=name, CopySource={"Bucket": "copy-from", "Key": name})
        assert copied["CopyObjectResult"]["ETag"] == put["ETag"]
        s3.delete_object(Bucket="copy-from", Key=name)
        got = s3.get_object(Bucket="copy-to", Key=name)
        assert (got["Body"].read(), got["Metadata"], got["ContentType"]) == (body, {"a": "b"}, "text/x")
    with pytest.raises(ClientError) as error:
        s3.copy_object(
            Bucket="copy-to", Key="no", CopySource={"Bucket": "copy-to", "Key": "small"}, CopySourceIfMatch="x"
        )
    assert code_of(error)[0] == 412


def test_a_multipart_object_copied_to_another_store_is_one_blob(s3: Any) -> None:
    make(s3, "parts-from", "eu-west-1:slow")
    make(s3, "parts-to", "eu-west-1:fast")
    upload = s3.create_multipart_upload(Bucket="parts-from", Key="k", ChecksumAlgorithm="SHA256")["UploadId"]
    place = {"Bucket": "parts-from", "Key": "k", "UploadId": upload}
    parts = []
    for number, body in ((1, PART), (2, SMALL)):
        made = s3.upload_part(**place, PartNumber=number, Body=body, ChecksumAlgorithm="SHA256")
        parts.append({"PartNumber": number, "ETag": made["ETag"], "ChecksumSHA256": made["ChecksumSHA256"]})
    whole = s3.complete_multipart_upload(**place, MultipartUpload={"Parts": parts})
    assert whole["ETag"].endswith('-2"')
    s3.copy_object(Bucket="parts-to", Key="k", CopySource={"Bucket": "parts-from", "Key": "k"})
    got = s3.get_object(Bucket="parts-to", Key="k", ChecksumMode="ENABLED")
    assert got["Body"].read() == PART + SMALL
    assert got["ETag"] == f'"{hashlib.md5(PART + SMALL).hexdigest()}"'
    assert got["ChecksumType"] == "FULL_OBJECT"
    assert s3.head_object(Bucket="parts-to", Key="k", PartNumber=1)["ContentLength"] == len(PART + SMALL)


def test_a_part_copied_from_another_store(s3: Any) -> None:
    make(s3, "part-from", "eu-west-1:slow")
    make(s3, "part-to", "eu-west-1:fast")
    s3.put_object(Bucket="part-from", Key="k", Body=PART + LARGE)
    upload = s3.create_multipart_upload(Bucket="part-to", Key="k")["UploadId"]
    place = {"Bucket": "part-to", "Key": "k", "UploadId": upload}
    parts = []
    for number, wanted in ((1, f"bytes=0-{len(PART) - 1}"), (2, f"bytes={len(PART)}-{len(PART) + 9}")):
        made = s3.upload_part_copy(
            **place, PartNumber=number, CopySource={"Bucket": "part-from", "Key": "k"}, CopySourceRange=wanted
        )["CopyPartResult"]
        parts.append({"PartNumber": number, "ETag": made["ETag"]})
    s3.delete_object(Bucket="part-from", Key="k")
    s3.complete_multipart_upload(**place, MultipartUpload={"Parts": parts})
    assert s3.get_object(Bucket="part-to", Key="k")["Body"].read() == PART + LARGE[:10]


def test_the_admin_api_tells(two: Gateway, s3: Any) -> None:
    make(s3, "told", "eu-west-1:slow")
    with httpx.Client(base_url=two.admin, headers={"authorization": "Bearer admin-token"}) as admin:
        fast, slow = admin.get("/api/v1/stores").json()
        assert (fast["name"], fast["default"], fast["durability"], fast["state"]) == ("fast", True, "full", "up")
        assert (slow["name"], slow["default"], slow["durability"], slow["state"]) == ("slow", False, "relaxed", "up")
        assert slow["buckets"] >= 1
        assert fast["store"] != slow["store"]
        assert admin.get("/api/v1/buckets/told").json()["store"] == "slow"
        assert admin.get("/api/v1/buckets/not-there").status_code == 404
        metrics = admin.get("/metrics").text
    for name in ("fast", "slow"):
        assert f'sluice_store_up{{store="{name}"}} 1' in metrics
        assert f'sluice_pack_bytes{{store="{name}",state="live"}}' in metrics


def test_fsck_and_scrub_look_at_every_store(two: Gateway, s3: Any) -> None:
    for name in ("fast", "slow"):
        make(s3, f"whole-{name}", f"eu-west-1:{name}")
        for key, body in (("small", SMALL), ("large", LARGE)):
            s3.put_object(Bucket=f"whole-{name}", Key=key, Body=body)
    for command in ("fsck", "scrub"):
        report = json.loads(two.run(command, "--json").stdout)
        assert report["clean"] is True, report
        assert report["rows"] >= 4


def test_a_full_store_takes_no_more_and_gives_space_back(tmp_path: Path) -> None:
    gateway = configured(tmp_path)
    config = tmp_path / "sluice.toml"
    config.write_text(f"{config.read_text()}max_bytes = 100000\n")
    with gateway:
        s3 = client(gateway.endpoint, region="eu-west-1")
        make(s3, "full", "eu-west-1:slow")
        make(s3, "other", None)
        s3.put_object(Bucket="full", Key="large", Body=LARGE)

        def put() -> int:
            try:
                s3.put_object(Bucket="full", Key="small", Body=SMALL)
            except ClientError as error:
                return int(error.response["ResponseMetadata"]["HTTPStatusCode"])
            return 200

        eventually(lambda: put() == 507)
        assert s3.get_object(Bucket="full", Key="large")["Body"].read() == LARGE
        s3.put_object(Bucket="other", Key="large", Body=LARGE)
        with pytest.raises(ClientError) as error:
            s3.copy_object(Bucket="full", Key="copy", CopySource={"Bucket": "other", "Key": "large"})
        assert code_of(error) == (507, "InsufficientStorage")
        s3.delete_object(Bucket="full", Key="large")
        eventually(lambda: put() == 200)


def test_a_store_over_fsspec(tmp_path: Path) -> None:
    gateway = configured(tmp_path)
    gateway.workers = 1
    config = tmp_path / "sluice.toml"
    kept = f'{config.read_text()}[stores.remote]\ndriver = "fsspec"\ndurability = "relaxed"\nurl = '
    config.write_text(f'{kept}"memory://functional"\n')
    with gateway:
        s3 = client(gateway.endpoint, region="eu-west-1")
        assert make(s3, "remote", "eu-west-1:remote")["x-sluice-store"] == "remote"
        for name, body in (("small", SMALL), ("large", LARGE)):
            s3.put_object(Bucket="remote", Key=name, Body=body)
            assert s3.get_object(Bucket="remote", Key=name)["Body"].read() == body
            assert s3.get_object(Bucket="remote", Key=name, Range="bytes=6-11")["Body"].read() == body[6:12]
        s3.delete_object(Bucket="remote", Key="small")
        assert gateway.run("fsck", check=False).returncode == 1, "only the server can look"
    with pytest.raises(RuntimeError):
        gateway.start()
    assert "ended with its process" in (tmp_path / "gateway.log").read_text(), "an empty place is not taken for it"


def test_starts_and_refusals(tmp_path: Path) -> None:
    gateway = configured(tmp_path)
    config = tmp_path / "sluice.toml"
    with gateway:
        s3 = client(gateway.endpoint, region="eu-west-1")
        make(s3, "kept", "eu-west-1:slow")
        s3.put_object(Bucket="kept", Key="small", Body=SMALL)
        s3.put_object(Bucket="kept", Key="large", Body=LARGE)
    whole = config.read_text()
    with gateway:  # the same again
        assert (
            client(gateway.endpoint, region="eu-west-1").get_object(Bucket="kept", Key="small")["Body"].read() == SMALL
        )

    def refused(text: str, *words: str) -> None:
        config.write_text(text)
        with pytest.raises(RuntimeError):
            gateway.start()
        log = (tmp_path / "gateway.log").read_text().splitlines()[-1]
        assert all(word in log for word in words), log

    def down() -> None:
        config.write_text(whole)
        with gateway, pytest.raises(ClientError) as away:
            client(gateway.endpoint, region="eu-west-1").get_object(Bucket="kept", Key="large")
        assert away.value.response["Error"]["Code"] == "ServiceUnavailable"

    without = whole[: whole.index("[stores.slow]")]
    refused(without, "'slow'", "1 buckets")
    third = f'{whole}[stores.third]\npath = "{tmp_path}/third"\n'
    refused(third.replace('third"\n', 'third"\ndriver = "tape"\n'), "third", "tape")
    (tmp_path / "slow").rename(tmp_path / "away")
    down()
    (tmp_path / "slow").mkdir()  # an empty mount point
    down()
    assert list((tmp_path / "slow").iterdir()) == []
    (tmp_path / "slow").rmdir()
    shutil.copytree(tmp_path / "fast", tmp_path / "slow")
    refused(whole, "store slow", "generation")
    shutil.rmtree(tmp_path / "slow")
    (tmp_path / "away").rename(tmp_path / "slow")
    config.write_text(third)  # a store that is new is made
    with gateway:
        s3 = client(gateway.endpoint, region="eu-west-1")
        assert s3.get_object(Bucket="kept", Key="large")["Body"].read() == LARGE
        make(s3, "new", "eu-west-1:third")
        s3.put_object(Bucket="new", Key="k", Body=SMALL)
        s3.delete_object(Bucket="new", Key="k")
        s3.delete_bucket(Bucket="new")
    config.write_text(whole)  # and may go again when it has no bucket
    with gateway:
        assert (
            client(gateway.endpoint, region="eu-west-1").get_object(Bucket="kept", Key="large")["Body"].read() == LARGE
        )
