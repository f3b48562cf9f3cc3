"""Quotas of buckets, set by the command and the admin API, held for every kind of write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.test_post_object import error, post
from tests.integration.functional.test_tagging import refused
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

pytestmark = pytest.mark.place

EXCEEDED = (403, "QuotaExceeded")
BUCKET = "limited"
PART = 5 * 1024 * 1024


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Gateway]:
    """One worker, which so counts all that is written."""
    with Gateway(tmp_path / "data", workers=1, options=("--admin-port", "0")) as running:
        client(running.endpoint).create_bucket(Bucket=BUCKET)
        yield running


def quota(gateway: Gateway, **wanted: int) -> dict[str, Any]:
    """Set what a bucket may hold, by the admin API, and look."""
    token = (gateway.data / "admin-token").read_text().strip()
    url, headers = f"{gateway.admin}/api/v1/buckets/{BUCKET}/quota", {"authorization": f"Bearer {token}"}
    if wanted:
        assert httpx.put(url, json=wanted, headers=headers).status_code == 204
    found: dict[str, Any] = httpx.get(url, headers=headers).json()
    return found


def wait_for(call: Callable[[], Any]) -> None:
    """Call until the worker has counted again."""

    def fits() -> bool:
        try:
            call()
        except ClientError as refusal:
            if refusal.response["Error"]["Code"] != "QuotaExceeded":
                raise
            return False
        return True

    eventually(fits, "the worker has counted again")


def test_bytes_and_objects(alone: Gateway) -> None:
    s3 = client(alone.endpoint)
    at = {"Bucket": BUCKET}
    s3.put_object(Key="a", Body=b"x" * 60, **at)
    none = {"bytes": None, "objects": None, "used_bytes": 60, "used_objects": 1}
    assert quota(alone) == none
    assert quota(alone, bytes=100) == none | {"bytes": 100}
    refused(EXCEEDED, s3.put_object, Key="b", Body=b"x" * 41, **at)
    refused(EXCEEDED, s3.put_object, Key="a", Body=b"x" * 41, **at)  # it counts until it is replaced
    refused(EXCEEDED, s3.copy_object, Key="b", CopySource=f"{BUCKET}/a", **at)
    s3.put_object(Key="b", Body=b"x" * 40, **at)
    refused(EXCEEDED, s3.put_object, Key="c", Body=b"x", **at)
    s3.put_object(Key="empty", Body=b"", **at)
    upload = s3.create_multipart_upload(Key="m", **at)["UploadId"]
    part = {"Key": "m", "UploadId": upload, "PartNumber": 1, **at}
    refused(EXCEEDED, s3.upload_part, Body=b"x", **part)
    refused(EXCEEDED, s3.upload_part_copy, CopySource=f"{BUCKET}/a", **part)
    fields = s3.generate_presigned_post(BUCKET, "f")["fields"]
    assert error(post(alone, BUCKET, fields, b"x"))[:2] == EXCEEDED
    answer = httpx.put(s3.generate_presigned_url("put_object", Params={"Key": "c", **at}), content=iter([b"x"]))
    assert error(answer)[:2] == EXCEEDED
    s3.delete_object(Key="a", **at)
    wait_for(lambda: s3.put_object(Key="c", Body=b"x" * 60, **at))
    assert quota(alone) == {"bytes": 100, "objects": None, "used_bytes": 100, "used_objects": 3}
    assert quota(alone, bytes=200, objects=3) == {"bytes": 200, "objects": 3, "used_bytes": 100, "used_objects": 3}
    refused(EXCEEDED, s3.put_object, Key="d", Body=b"", **at)
    assert json.loads(alone.run("bucket", "quota", BUCKET, "--none").stdout)["objects"] is None
    s3.put_object(Key="d", Body=b"x" * 1000, **at)
    assert [entry["Key"] for entry in s3.list_objects_v2(**at)["Contents"]] == ["b", "c", "d", "empty"]


def test_what_does_not_say_its_size(alone: Gateway) -> None:
    s3 = client(alone.endpoint)
    at = {"Bucket": BUCKET}
    most = 3 << 20
    quota(alone, bytes=most)

    def sent(size: int, call: str = "put_object", **more: Any) -> httpx.Response:
        url = s3.generate_presigned_url(call, Params={"Key": "k", **at, **more})
        return httpx.put(url, content=iter([b"x" * size]))

    def form(size: int) -> httpx.Response:
        return post(alone, BUCKET, s3.generate_presigned_post(BUCKET, "f")["fields"], b"x" * size)

    part = {"UploadId": s3.create_multipart_upload(Key="k", **at)["UploadId"], "PartNumber": 1}
    for size in (most + 1, 4 * most):
        for answer in (sent(size), sent(size, "upload_part", **part), form(size)):
            assert error(answer)[:2] == EXCEEDED
    assert quota(alone) == {"bytes": most, "objects": None, "used_bytes": 0, "used_objects": 0}
    # up to the last byte: the fields of a form do not count
    assert form(1000).status_code == 204
    assert sent(1000, "upload_part", **part).status_code == 200
    assert sent(most - 2000).status_code == 200
    assert quota(alone) == {"bytes": most, "objects": None, "used_bytes": most, "used_objects": 2}
    assert error(sent(1))[:2] == EXCEEDED


def test_parts_count_once(alone: Gateway) -> None:
    s3 = client(alone.endpoint)
    quota(alone, bytes=PART + 10, objects=1)
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="m")["UploadId"]
    at = {"Bucket": BUCKET, "Key": "m", "UploadId": upload}
    etags = [s3.upload_part(PartNumber=n, Body=b"p" * size, **at)["ETag"] for n, size in ((1, PART), (2, 10))]
    refused(EXCEEDED, s3.upload_part, PartNumber=3, Body=b"p", **at)
    parts = [{"ETag": etag, "PartNumber": number} for number, etag in enumerate(etags, 1)]
    s3.complete_multipart_upload(MultipartUpload={"Parts": parts}, **at)
    assert quota(alone) == {"bytes": PART + 10, "objects": 1, "used_bytes": PART + 10, "used_objects": 1}
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="m")["UploadId"]
    s3.abort_multipart_upload(Bucket=BUCKET, Key="m", UploadId=upload)
    s3.delete_object(Bucket=BUCKET, Key="m")
    wait_for(lambda: s3.put_object(Bucket=BUCKET, Key="m", Body=b"x" * PART))


def test_versions_count_and_markers_do_not(alone: Gateway) -> None:
    s3 = client(alone.endpoint)
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    quota(alone, objects=2)
    for body in (b"1", b"2"):
        s3.put_object(Bucket=BUCKET, Key="k", Body=body)
    s3.delete_object(Bucket=BUCKET, Key="k")
    refused(EXCEEDED, s3.put_object, Bucket=BUCKET, Key="k", Body=b"3")
    assert quota(alone)["used_objects"] == 2


def test_the_admin_api_and_what_is_wrong(alone: Gateway) -> None:
    token = (alone.data / "admin-token").read_text().strip()
    with httpx.Client(base_url=f"{alone.admin}/api/v1", headers={"authorization": f"Bearer {token}"}) as admin:
        path = f"/buckets/{BUCKET}/quota"
        assert admin.get(path).json() == {"bytes": None, "objects": None, "used_bytes": 0, "used_objects": 0}
        assert admin.put(path, json={"bytes": 5}).status_code == 204
        assert admin.get(path).json()["bytes"] == 5
        refused(EXCEEDED, client(alone.endpoint).put_object, Bucket=BUCKET, Key="k", Body=b"123456")
        assert admin.put(path, json={"objects": -1}).status_code == 422
        assert admin.put(path, json={}).status_code == 204
        assert admin.get(path).json()["bytes"] is None
        assert admin.get("/buckets/nothing-here/quota").status_code == 404
        assert admin.put("/buckets/nothing-here/quota", json={}).status_code == 404
    missing = alone.run("bucket", "quota", "nothing-here", check=False)
    assert (missing.returncode, missing.stderr) == (3, "sluice: no such bucket\n")
    assert alone.run("bucket", "quota", BUCKET, "--none", "--bytes", "1", check=False).returncode == 2
    assert alone.run("bucket", "quota", BUCKET, "--bytes", "-1", check=False).returncode == 2


def test_by_the_command_on_every_place(gateway: Gateway, s3: Any, bucket: str) -> None:
    def told(*options: str) -> Any:
        return json.loads(gateway.run("bucket", "quota", bucket, *options).stdout)

    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    assert told("--objects", "1") == {"bytes": None, "objects": 1, "used_bytes": 4, "used_objects": 1}
    refused(EXCEEDED, s3.put_object, Bucket=bucket, Key="n", Body=b"")
    refused(EXCEEDED, s3.copy_object, Bucket=bucket, Key="n", CopySource=f"{bucket}/k")
    assert told("--bytes", "10")["objects"] == 1
    assert told("--none")["bytes"] is None
    wait_for(lambda: s3.put_object(Bucket=bucket, Key="n", Body=b""))


def test_workers_hold_it_together(tmp_path: Path) -> None:
    """Each may let in one write that another one does not see yet, and no more."""
    size, workers = 1 << 18, 4
    refusals: list[str] = []
    with Gateway(tmp_path / "data", workers=workers, options=("--admin-port", "0")) as gateway:
        client(gateway.endpoint).create_bucket(Bucket=BUCKET)
        quota(gateway, bytes=10 * size)

        def write(number: int) -> int:
            s3 = client(gateway.endpoint)  # connections of its own, which go to any worker
            done = 0
            for one in range(5):
                try:
                    s3.put_object(Bucket=BUCKET, Key=f"{number}-{one}", Body=b"x" * size)
                except ClientError as refusal:
                    refusals.append(refusal.response["Error"]["Code"])
                else:
                    done += 1
            return done

        with ThreadPoolExecutor(16) as threads:
            taken = sum(threads.map(write, range(16)))
        assert set(refusals) == {"QuotaExceeded"}
        assert 10 <= taken <= 10 + workers - 1
        assert quota(gateway)["used_bytes"] == taken * size
