"""Objects, uploads, copies and races again on a store in memory; and a store over sftp that is damaged and killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.functional import test_copy, test_multipart, test_objects, test_races
from tests.functional.over_url import over_url
from tests.functional.test_objects import code_of
from tests.gateway import Gateway, client
from tests.storage_drivers.places import ssh_server

for _module in (test_objects, test_multipart, test_copy, test_races):
    globals().update({name: found for name, found in vars(_module).items() if name.startswith("test_")})

PARTS = [os.urandom(5 << 20), os.urandom(1000)]
LARGE = os.urandom(3 << 20)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """As that of the other functional tests, but for its store."""
    env = {"SLUICE_SIGV2": "on", "SLUICE_DISCARD_GRACE": "0", "SLUICE_DOMAIN": "s3.test"}
    with over_url(tmp_path_factory.mktemp("memory"), "memory://functional", **env) as running:
        yield running


@pytest.fixture(scope="module")
def s3(gateway: Gateway) -> Any:
    """boto3 as the first account."""
    return client(gateway.endpoint)


@pytest.fixture(scope="module")
def other(gateway: Gateway) -> Any:
    """boto3 as another account."""
    gateway.run("user", "add", "--access-key", "OTHERKEY", "--secret-key", "other-secret-0123", "--id", "other-id")
    return client(gateway.endpoint, "OTHERKEY", "other-secret-0123")


def test_a_store_over_sftp(tmp_path: Path) -> None:
    with ssh_server(tmp_path) as server:
        place = server.place(tmp_path / "store")
        with over_url(tmp_path, place.url, place.options) as gateway:
            s3 = client(gateway.endpoint)
            s3.create_bucket(Bucket="far")
            told = s3.put_object(Bucket="far", Key="small", Body=b"small")
            assert told["ResponseMetadata"]["HTTPHeaders"]["x-sluice-durability"] == "relaxed"
            s3.put_object(Bucket="far", Key="large", Body=LARGE)
            upload = {"Bucket": "far", "Key": "parts"}
            upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
            made = [
                {"PartNumber": number, "ETag": s3.upload_part(**upload, PartNumber=number, Body=part)["ETag"]}
                for number, part in enumerate(PARTS, 1)
            ]
            s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": made})
            server.cut()
            gateway.kill()
            gateway.start()
            s3 = client(gateway.endpoint)
            for key, body in (("small", b"small"), ("large", LARGE), ("parts", b"".join(PARTS))):
                assert s3.get_object(Bucket="far", Key=key)["Body"].read() == body
            asked = s3.get_object(Bucket="far", Key="large", Range="bytes=1048570-2097160")
            assert asked["Body"].read() == LARGE[1048570:2097161]
            (damaged,) = [path for path in (tmp_path / "store/data").glob("*/*") if path.read_bytes()[:5] == b"small"]
            damaged.write_bytes(b"smell" + damaged.read_bytes()[5:])
            with pytest.raises(ClientError) as error:
                s3.get_object(Bucket="far", Key="small")
            assert code_of(error)[0] == 503
            assert gateway.run("scrub", check=False).returncode == 8
            server.stop()
            with pytest.raises(ClientError) as error:
                s3.put_object(Bucket="far", Key="new", Body=b"new")
            assert code_of(error)[0] == 503
            server.start()
            s3.put_object(Bucket="far", Key="new", Body=b"new")
            assert s3.get_object(Bucket="far", Key="new")["Body"].read() == b"new"
