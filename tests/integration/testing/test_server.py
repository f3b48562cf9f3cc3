"""`sluice_s3.testing.Server`: a server for tests without pytest."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sluice_s3.testing import Server, ServerFailed
from sluice_s3.testing.buckets import bucket_name, remove_bucket
from tests.support.waiting import eventually

SMALL, LARGE = b"small", b"large" * 100_000


@pytest.fixture
def bucket(s3: Any) -> str:
    name = bucket_name("faults")
    s3.create_bucket(Bucket=name)
    return name


def answer(call: Any, **arguments: Any) -> tuple[int, str]:
    with pytest.raises(ClientError) as failed:
        call(**arguments)
    response = failed.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    ("fault", "expected"),
    [("disk full", (507, "InsufficientStorage")), ("read-only", (503, "ServiceUnavailable"))],
)
def test_a_fault_answers_as_the_disk_would(
    server: Server, s3: Any, bucket: str, fault: str, expected: tuple[int, str], body: bytes
) -> None:
    s3.put_object(Bucket=bucket, Key="before", Body=body)
    with server.fault(fault):
        assert answer(s3.put_object, Bucket=bucket, Key="before", Body=b"other") == expected
        assert answer(s3.put_object, Bucket=bucket, Key="new", Body=body) == expected
        upload = s3.create_multipart_upload(Bucket=bucket, Key="parts")["UploadId"]
        part = {"Bucket": bucket, "Key": "parts", "UploadId": upload, "PartNumber": 1, "Body": body}
        assert answer(s3.upload_part, **part) == expected
        assert s3.get_object(Bucket=bucket, Key="before")["Body"].read() == body
    s3.upload_part(**part)
    s3.put_object(Bucket=bucket, Key="new", Body=body)
    assert [one["Key"] for one in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["before", "new"]


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_a_slow_sync_delays_the_answer(server: Server, s3: Any, bucket: str, body: bytes) -> None:
    with server.fault("slow fsync", seconds=0.3):
        started = monotonic()
        s3.put_object(Bucket=bucket, Key="slow", Body=body)
        assert monotonic() - started >= 0.3
    assert s3.get_object(Bucket=bucket, Key="slow")["Body"].read() == body


def test_a_bucket_goes_with_all_in_it(s3: Any) -> None:
    name = bucket_name("full")
    s3.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    s3.put_object(Bucket=name, Key="a", Body=b"1")
    s3.put_object(Bucket=name, Key="a", Body=b"2")
    s3.delete_object(Bucket=name, Key="a")
    later = "2099-01-01T00:00:00Z"
    s3.put_object(Bucket=name, Key="kept", Body=b"", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=later)
    s3.create_multipart_upload(Bucket=name, Key="b")
    remove_bucket(s3, name)
    assert name not in {one["Name"] for one in s3.list_buckets()["Buckets"]}
    remove_bucket(s3, name)


def test_its_files_are_private(server: Server) -> None:
    assert stat.S_IMODE(server.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(server.config.stat().st_mode) == 0o600


def test_what_it_cannot_do_it_says(tmp_path: Path, server: Server) -> None:
    with pytest.raises(ValueError, match="no fault 'rust'"):
        server.fault("rust")
    with pytest.raises(RuntimeError, match="does not run"):
        Server().client()
    (tmp_path / "kept").write_text("")
    with pytest.raises(ServerFailed, match="there is no setting 'colour'"):
        Server(tmp_path, colour="blue").start()
    assert (tmp_path / "kept").exists()
    with pytest.raises(ValueError, match="own store"):
        Server(tmp_path, data=str(tmp_path / "data")).fault("disk full")


PARENT = """
import sys, time
from sluice_s3.testing import Server
server = Server().start()
print(server._process.pid, server.directory, flush=True)
time.sleep(600)
"""


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline().split()[0])
        os.kill(pid, 0)
        parent.send_signal(signal.SIGKILL)

    def gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    eventually(gone, "the end of the server")
