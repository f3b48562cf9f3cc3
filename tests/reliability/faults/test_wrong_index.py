"""An index that was restored, removed or damaged under a gateway, and journals that cannot be written."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

BUCKET = "bucket"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with Gateway(tmp_path / "data", workers=2) as started:
        client(started.endpoint).create_bucket(Bucket=BUCKET)
        yield started


def status(call: Callable[..., Any], **options: Any) -> int:
    try:
        answer = call(Bucket=BUCKET, **options)
    except ClientError as error:
        answer = error.response
    return int(answer["ResponseMetadata"]["HTTPStatusCode"])


def is_ready(gateway: Gateway) -> bool:
    answer = httpx.get(f"{gateway.endpoint}/-/health/ready")
    assert (answer.status_code, answer.text) in ((200, "up\n"), (503, "down\n"))
    return answer.status_code == 200


def outcomes(gateway: Gateway) -> tuple[int, int, int]:
    """What PUT, GET and DELETE answer in each of some requests, so that both workers are met; all must agree."""
    s3 = client(gateway.endpoint)
    found = set()
    for number in range(6):
        put = status(s3.put_object, Key="new", Body=b"2")
        get = status(s3.get_object, Key="kept")
        found.add((put, get, status(s3.delete_object, Key=f"gone{number}")))
        s3 = client(gateway.endpoint)
    assert len(found) == 1, found
    return found.pop()


@pytest.mark.parametrize("suffix", ["", "-wal"], ids=["index", "log"])
def test_an_index_that_is_removed_acknowledges_nothing(gateway: Gateway, suffix: str) -> None:
    s3 = client(gateway.endpoint)
    assert status(s3.put_object, Key="kept", Body=b"1") == 200
    index = gateway.data / "index"
    os.unlink(index / f"sluice.db{suffix}")
    assert status(s3.put_object, Key="new", Body=b"2") == 503
    assert outcomes(gateway) == (503, 200, 503)
    assert not is_ready(gateway)
    log = gateway.data.with_name(f"{gateway.data.name}.log").read_text()
    assert f"sluice.db{suffix} of the index was removed: it takes no changes any more" in log


def test_an_index_that_is_replaced_acknowledges_nothing(gateway: Gateway, tmp_path: Path) -> None:
    s3 = client(gateway.endpoint)
    assert status(s3.put_object, Key="kept", Body=b"1") == 200
    index = gateway.data / "index" / "sluice.db"
    shutil.copy(index, tmp_path / "copy")
    os.replace(tmp_path / "copy", index)
    assert outcomes(gateway) == (503, 200, 503)
    assert not is_ready(gateway)


def test_readiness_remembers_damage(gateway: Gateway) -> None:
    s3 = client(gateway.endpoint)
    assert status(s3.put_object, Key="kept", Body=b"1") == 200
    with closing(sqlite3.connect(gateway.data / "index" / "sluice.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(gateway.data / "index" / "sluice.db", 8192)
    eventually(lambda: status(s3.put_object, Key="kept", Body=b"2") == 503)
    eventually(lambda: not is_ready(gateway))


def test_journals_that_cannot_be_written_stop_changes(gateway: Gateway) -> None:
    s3 = client(gateway.endpoint)
    assert status(s3.put_object, Key="kept", Body=b"1") == 200
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="upload")["UploadId"]
    part = s3.upload_part(Bucket=BUCKET, Key="upload", UploadId=upload, PartNumber=1, Body=b"part")["ETag"]
    shutil.rmtree(gateway.data / "journals")
    assert status(s3.put_object, Key="untold", Body=b"1") == 200, "a moment is no failure"
    eventually(lambda: outcomes_or_none(gateway) == (503, 200, 503))
    assert not is_ready(gateway)
    assert status(s3.copy_object, Key="copy", CopySource=f"{BUCKET}/kept") == 503
    parts = {"Parts": [{"PartNumber": 1, "ETag": part}]}
    assert status(s3.complete_multipart_upload, Key="upload", UploadId=upload, MultipartUpload=parts) == 503
    assert status(s3.put_bucket_tagging, Tagging={"TagSet": [{"Key": "a", "Value": "b"}]}) == 503
    assert status(s3.list_objects_v2) == 200
    (gateway.data / "journals").mkdir()
    eventually(lambda: outcomes_or_none(gateway) == (200, 200, 204))
    eventually(lambda: is_ready(gateway))
    assert status(s3.complete_multipart_upload, Key="upload", UploadId=upload, MultipartUpload=parts) == 200
    gateway.stop()
    shutil.rmtree(gateway.data / "index")
    assert json.loads(gateway.run("rebuild", "--json").stdout)["not_restored"] == []
    gateway.start()
    found = client(gateway.endpoint).list_objects_v2(Bucket=BUCKET)["Contents"]
    assert {one["Key"] for one in found} == {"kept", "new", "untold", "upload"}


def outcomes_or_none(gateway: Gateway) -> tuple[int, int, int] | None:
    try:
        return outcomes(gateway)
    except AssertionError:
        return None


def test_a_restored_backup_is_refused_and_recovered(gateway: Gateway, tmp_path: Path) -> None:
    """Finding S1: acknowledged objects answered 404, and fsck --repair removed them."""
    s3 = client(gateway.endpoint)
    for number in range(10):
        s3.put_object(Bucket=BUCKET, Key=f"a{number}", Body=b"first")
    gateway.stop()
    shutil.copytree(gateway.data / "index", tmp_path / "backup")
    gateway.start()
    s3 = client(gateway.endpoint)
    for number in range(10):
        s3.put_object(Bucket=BUCKET, Key=f"b{number}", Body=b"second" * (1 if number < 5 else 40_000))
    for number in range(3):
        s3.delete_object(Bucket=BUCKET, Key=f"a{number}")
    s3.put_object(Bucket=BUCKET, Key="a9", Body=b"new")
    gateway.stop()
    shutil.rmtree(gateway.data / "index")
    shutil.copytree(tmp_path / "backup", gateway.data / "index")
    with pytest.raises(RuntimeError, match="did not start"):
        gateway.start()
    gateway.process = None
    last = (gateway.data.parent / "data.log").read_text().splitlines()[-1]
    assert last.startswith("sluice: the index is older than its data: the journals go on for "), last
    for command in (("fsck", "--repair"), ("scrub",)):
        refused = gateway.run(*command, check=False)
        assert refused.returncode == 1
        assert "the index is older than its data" in refused.stderr
        assert "sluice recover" in refused.stderr
        assert "Traceback" not in refused.stderr
    assert gateway.run("recover", "--dry-run", check=False).returncode == 0
    assert "the older index is now" in gateway.run("recover").stdout
    gateway.start()
    s3 = client(gateway.endpoint)
    found = {one["Key"] for one in s3.list_objects_v2(Bucket=BUCKET)["Contents"]}
    assert found == {f"a{number}" for number in range(3, 10)} | {f"b{number}" for number in range(10)}
    assert s3.get_object(Bucket=BUCKET, Key="a9")["Body"].read() == b"new"
    assert s3.get_object(Bucket=BUCKET, Key="b9")["Body"].read() == b"second" * 40_000
    assert s3.put_object(Bucket=BUCKET, Key="later", Body=b"1")["ResponseMetadata"]["HTTPStatusCode"] == 200
    gateway.stop()
    assert gateway.run("fsck").stdout.endswith("clean\n")


@pytest.mark.parametrize("lose", [os.unlink, lambda log: os.truncate(log, 0)], ids=["removed", "truncated"])
def test_a_log_that_is_lost_with_the_last_writes(gateway: Gateway, lose: Callable[[Path], None]) -> None:
    """What no journal tells yet was lost without a word when the log went before a kill -9."""
    time.sleep(2.5)  # the journals tell of the bucket
    with closing(sqlite3.connect(gateway.data / "index" / "sluice.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    s3 = client(gateway.endpoint)
    for number in range(20):
        s3.put_object(Bucket=BUCKET, Key=f"b{number}", Body=b"S" * (1 if number < 10 else 200_000))
    lose(gateway.data / "index" / "sluice.db-wal")
    gateway.kill()
    with pytest.raises(RuntimeError, match="did not start"):
        gateway.start()
    last = (gateway.data.parent / "data.log").read_text().splitlines()[-1]
    assert last.startswith("sluice: the index "), last
    assert "`sluice recover`" in last
    refused = gateway.run("fsck", "--repair", check=False)
    assert (refused.returncode, "`sluice recover`" in refused.stderr) == (1, True), refused.stderr
    gateway.run("recover")
    gateway.start()
    assert client(gateway.endpoint).list_objects_v2(Bucket=BUCKET)["KeyCount"] == 20


def test_an_index_without_its_log_is_refused(gateway: Gateway) -> None:
    """Finding S1, second part: `-wal` removed after kill -9 left an empty index that was served."""
    s3 = client(gateway.endpoint)
    for number in range(20):
        s3.put_object(Bucket=BUCKET, Key=f"b{number}", Body=b"S" * (1 if number < 10 else 200_000))
    time.sleep(2.5)
    gateway.kill()
    for suffix in ("-wal", "-shm"):
        (gateway.data / "index" / f"sluice.db{suffix}").unlink(missing_ok=True)
    with pytest.raises(RuntimeError, match="did not start"):
        gateway.start()
    gateway.process = None
    recovered = gateway.run("recover", check=False)
    if recovered.returncode:  # not even its tables had left the log
        assert gateway.run("rebuild", "--replace").returncode == 0
    gateway.start()
    assert client(gateway.endpoint).list_objects_v2(Bucket=BUCKET)["KeyCount"] == 20
