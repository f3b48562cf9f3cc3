"""Inventories of buckets, on every place."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import itertools
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from pyarrow import parquet

from tests.integration.functional.conftest import MASTER
from tests.support.gateway import Gateway, client
from tests.support.places import kinds_for, placed
from tests.support.waiting import eventually

_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=kinds_for(pytest.mark.place("postgres", "tree").mark))
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    directory = tmp_path_factory.mktemp("inventory")
    with placed(directory, request.param) as place, Gateway(directory / "data", place=place) as running:
        yield running


@pytest.fixture
def s3(gateway: Gateway) -> Any:
    return client(gateway.endpoint)


def make(s3: Any, **options: Any) -> str:
    name = f"inventory-{next(_numbers)}"
    s3.create_bucket(Bucket=name, **options)
    return name


def let(s3: Any, source: str, target: str) -> None:
    """As AWS's documentation has it."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "s3.amazonaws.com"},
        "Action": "s3:PutObject",
        "Resource": f"arn:aws:s3:::{target}/*",
        "Condition": {
            "ArnLike": {"aws:SourceArn": f"arn:aws:s3:::{source}"},
            "StringEquals": {"s3:x-amz-acl": "bucket-owner-full-control"},
        },
    }
    s3.put_bucket_policy(Bucket=target, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


def described(target: str, name: str = "list", **more: Any) -> dict[str, Any]:
    destination = {"Bucket": f"arn:aws:s3:::{target}", "Format": more.pop("Format", "CSV"), "Prefix": "reports"}
    found = {
        "Id": name,
        "IsEnabled": True,
        "Destination": {"S3BucketDestination": destination},
        "IncludedObjectVersions": "Current",
        "Schedule": {"Frequency": "Daily"},
    }
    return found | more


def sealed(target: str) -> dict[str, Any]:
    found = described(target)
    found["Destination"]["S3BucketDestination"]["Encryption"] = {"SSES3": {}}
    return found


def configure(s3: Any, source: str, found: dict[str, Any]) -> None:
    s3.put_bucket_inventory_configuration(Bucket=source, Id=found["Id"], InventoryConfiguration=found)


def delivered(s3: Any, target: str, source: str, name: str = "list") -> dict[str, Any]:
    """The manifest, checked."""

    def keys_of_report() -> list[str]:
        listed = s3.list_objects_v2(Bucket=target, Prefix=f"reports/{source}/{name}/").get("Contents", ())
        keys = [one["Key"] for one in listed]
        return keys if any(key.endswith("/manifest.checksum") for key in keys) else []

    keys = eventually(keys_of_report, f"a manifest of {source}")
    checksums = [key for key in keys if key.endswith("/manifest.checksum")]
    assert re.fullmatch(rf"reports/{source}/{name}/\d{{4}}-\d\d-\d\dT\d\d-\d\dZ/manifest.checksum", checksums[0])
    text = read(s3, target, checksums[0].replace(".checksum", ".json"))
    assert read(s3, target, checksums[0]).decode() == hashlib.md5(text).hexdigest()
    manifest: dict[str, Any] = json.loads(text)
    assert (manifest["sourceBucket"], manifest["destinationBucket"]) == (source, f"arn:aws:s3:::{target}")
    (hive,) = [key for key in keys if key.endswith("/symlink.txt")]
    assert read(s3, target, hive).decode() == f"s3://{target}/{manifest['files'][0]['key']}"
    return manifest


def read(s3: Any, bucket: str, key: str) -> bytes:
    body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    return body


def rows(s3: Any, target: str, manifest: dict[str, Any]) -> list[dict[str, str]]:
    found = []
    for one in manifest["files"]:
        data = read(s3, target, one["key"])
        assert (len(data), hashlib.md5(data).hexdigest()) == (one["size"], one["MD5checksum"])
        text = gzip.decompress(data).decode()
        assert text.startswith('"') or not text
        found += list(csv.DictReader(io.StringIO(text), manifest["fileSchema"].split(", ")))
    return found


def test_current_objects(s3: Any) -> None:
    source, target = make(s3), make(s3)
    let(s3, source, target)
    etags = {
        key: s3.put_object(Bucket=source, Key=key, Body=key.encode())["ETag"].strip('"')
        for key in ("in/a b", "in/ü", "x")
    }
    fields = [
        "Size",
        "LastModifiedDate",
        "ETag",
        "StorageClass",
        "ChecksumAlgorithm",
        "EncryptionStatus",
        "ObjectOwner",
    ]
    wanted = described(target, OptionalFields=fields, Filter={"Prefix": "in/"})
    configure(s3, source, wanted)
    manifest = delivered(s3, target, source)
    assert manifest["fileFormat"] == "CSV"
    first, second = rows(s3, target, manifest)
    assert [first["Key"], second["Key"]] == ["in/a%20b", "in/%C3%BC"]
    owner = s3.list_buckets()["Owner"]["ID"]
    expected = {"Bucket": source, "Size": "6", "ETag": etags["in/a b"], "StorageClass": "STANDARD"}
    expected |= {"ChecksumAlgorithm": "CRC32", "EncryptionStatus": "NOT-SSE", "ObjectOwner": owner}
    assert first | expected == first
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["LastModifiedDate"])
    found = s3.get_bucket_inventory_configuration(Bucket=source, Id="list")["InventoryConfiguration"]
    assert sorted(found.pop("OptionalFields")) == sorted(wanted.pop("OptionalFields"))
    assert found == wanted


def test_all_versions(gateway: Gateway, s3: Any) -> None:
    if gateway.place.store.get("layout") == "tree":
        pytest.skip("no versions of plain files")
    source, target = make(s3), make(s3)
    let(s3, source, target)
    s3.put_bucket_versioning(Bucket=source, VersioningConfiguration={"Status": "Enabled"})
    ids = [s3.put_object(Bucket=source, Key="k", Body=b"x" * size)["VersionId"] for size in (1, 2)]
    marker = s3.delete_object(Bucket=source, Key="k")["VersionId"]
    configure(s3, source, described(target, IncludedObjectVersions="All", OptionalFields=["Size", "ObjectLockMode"]))
    found = rows(s3, target, delivered(s3, target, source))
    told = [tuple(row[name] for name in ("VersionId", "IsLatest", "IsDeleteMarker", "Size")) for row in found]
    assert told == [(marker, "true", "true", ""), (ids[1], "false", "false", "2"), (ids[0], "false", "false", "1")]


def test_parquet(s3: Any) -> None:
    source, target = make(s3), make(s3)
    let(s3, source, target)
    s3.put_object(Bucket=source, Key="k", Body=b"12345")
    configure(s3, source, described(target, Format="Parquet", OptionalFields=["Size", "LastModifiedDate", "ETag"]))
    manifest = delivered(s3, target, source)
    assert manifest["fileSchema"].startswith("message s3.inventory { required binary bucket (UTF8);")
    (row,) = parquet.read_table(io.BytesIO(read(s3, target, manifest["files"][0]["key"]))).to_pylist()
    assert (row["bucket"], row["key"], row["size"]) == (source, "k", 5)


def test_lists_and_what_is_refused(s3: Any) -> None:
    source, target = make(s3), make(s3)
    for number in range(101):
        configure(s3, source, described(target, f"n{number:03}", IsEnabled=False))
    page = s3.list_bucket_inventory_configurations(Bucket=source)
    assert (len(page["InventoryConfigurationList"]), page["IsTruncated"]) == (100, True)
    rest = s3.list_bucket_inventory_configurations(Bucket=source, ContinuationToken=page["NextContinuationToken"])
    assert [one["Id"] for one in rest["InventoryConfigurationList"]] == ["n100"]
    s3.delete_bucket_inventory_configuration(Bucket=source, Id="n100")

    def refused(**changed: Any) -> str:
        found = described(target) | changed
        with pytest.raises(ClientError) as error:
            s3.put_bucket_inventory_configuration(Bucket=source, Id="list", InventoryConfiguration=found)
        code: str = error.value.response["Error"]["Code"]
        return code

    assert refused(Id="other") == "IdMismatch"
    assert refused(Destination=described("there-is-none")["Destination"]) == "InvalidS3DestinationBucket"
    assert (
        refused(Destination={"S3BucketDestination": {"Bucket": target, "Format": "CSV"}})
        == "InvalidS3DestinationBucket"
    )
    assert refused(Destination=described(target, Format="ORC")["Destination"]) == "NotImplemented"
    assert refused(OptionalFields=["Colour"]) == "MalformedXML"
    for call in (s3.get_bucket_inventory_configuration, s3.delete_bucket_inventory_configuration):
        with pytest.raises(ClientError, match="NoSuchConfiguration"):
            call(Bucket=source, Id="n100")


def test_nothing_is_written_without_the_right_to(s3: Any) -> None:
    source, target = make(s3), make(s3)
    configure(s3, source, described(target))
    other = make(s3)
    let(s3, source, other)
    configure(s3, source, described(other, "second"))
    delivered(s3, other, source, "second")
    assert "Contents" not in s3.list_objects_v2(Bucket=target)


def test_configurations_that_are_put_at_once_are_all_kept(s3: Any) -> None:
    source = make(s3)
    names = [f"list{number}" for number in range(24)]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: configure(s3, source, described(source, name)), names))
    kept = s3.list_bucket_inventory_configurations(Bucket=source)["InventoryConfigurationList"]
    assert {one["Id"] for one in kept} == set(names)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: s3.delete_bucket_inventory_configuration(Bucket=source, Id=name), names))
    assert "InventoryConfigurationList" not in s3.list_bucket_inventory_configurations(Bucket=source)


def test_a_report_is_sealed(tmp_path: Path) -> None:
    with Gateway(tmp_path / "data", workers=1, env={"SLUICE_MASTER_KEY": MASTER}) as gateway:
        s3 = client(gateway.endpoint)
        source, target = make(s3), make(s3)
        let(s3, source, target)
        found = sealed(target)
        configure(s3, source, found)
        shown = s3.get_bucket_inventory_configuration(Bucket=source, Id="list")["InventoryConfiguration"]
        assert shown["Destination"] == found["Destination"]
        (file,) = delivered(s3, target, source)["files"]
        assert s3.head_object(Bucket=target, Key=file["key"])["ServerSideEncryption"] == "AES256"
