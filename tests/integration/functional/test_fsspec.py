"""A store over sftp whose sessions are cut, whose gateway is killed, whose data is damaged and whose server goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.test_objects import code_of
from tests.support.gateway import Gateway, client
from tests.support.places import Place
from tests.unit.storage_drivers.places import ssh_server

PARTS = [os.urandom(5 << 20), os.urandom(1000)]
LARGE = os.urandom(3 << 20)


def test_a_store_over_sftp(tmp_path: Path) -> None:
    with ssh_server(tmp_path) as server:
        far = server.place(tmp_path / "store")
        store = {"driver": "fsspec", "url": far.url, "options": far.options, "durability": "relaxed", "io_threads": 8}
        with Gateway(tmp_path / "gateway", place=Place(store)) as gateway:
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
