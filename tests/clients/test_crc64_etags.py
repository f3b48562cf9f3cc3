"""rclone and s3cmd with a store whose ETags are no MD5s: they transfer both ways and complain of nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.clients.files import Run, digest, digests, stored
from tests.support.gateway import Gateway, client

pytestmark = pytest.mark.clients

COMPLAINT = re.compile("warning|error|corrupt|differ(?!ences found)|could not|mismatch|retry|md5 sums", re.IGNORECASE)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    env = {"SLUICE_ETAG": "crc64nvme"}
    with Gateway(tmp_path_factory.mktemp("crc64") / "data", env=env) as running:
        yield running


@pytest.fixture(scope="module")
def s3(gateway: Gateway) -> Any:
    return client(gateway.endpoint)


def with_messages(run: Run, command: Any) -> Run:
    """Also give what the command wrote to standard error."""
    return partial(run, "sh", "-c", '"$@" 2>&1', "sh", *command.args)


def etags(s3: Any, bucket: str) -> list[str]:
    return [entry["ETag"].strip('"') for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]]


def test_s3cmd(run: Run, s3cmd: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    run_client = with_messages(run, s3cmd)
    said = run_client("sync", f"{tree}/", f"s3://{bucket}/place/")
    assert any(etag.endswith("-crc64nvme") for etag in etags(s3, bucket)), "the test shows nothing"
    assert stored(s3, bucket, "place/") == digests(tree)
    back = tmp_path / "back"
    back.mkdir()
    said += run_client("sync", f"s3://{bucket}/place/", f"{back}/")
    assert digests(back) == digests(tree)
    again = run_client("sync", f"{tree}/", f"s3://{bucket}/place/") + run_client(
        "sync", f"s3://{bucket}/place/", f"{back}/"
    )
    assert "upload:" not in again
    assert "download:" not in again
    assert not COMPLAINT.search(said + again), said + again


@pytest.mark.parametrize("provider", ["Other", "Minio"])
def test_rclone(
    run: Run,
    rclone: Run,
    environment: dict[str, str],
    s3: Any,
    bucket: str,
    tree: Path,
    tmp_path: Path,
    provider: str,
) -> None:
    """Of the provider Minio, as of AWS, it compares the ETags of multipart objects with its own."""
    environment["RCLONE_CONFIG_S_PROVIDER"] = provider
    run_client = with_messages(run, rclone)
    parts = ("--s3-upload-cutoff", "6M", "--s3-chunk-size", "5M")
    said = run_client("sync", *parts, tree, f"s:{bucket}/place")
    said += run_client("check", tree, f"s:{bucket}/place")
    said += run_client("sync", f"s:{bucket}/place", tmp_path / "back")
    assert digests(tmp_path / "back") == digests(tree)
    assert stored(s3, bucket, "place/") == digests(tree)
    assert not COMPLAINT.search(said), said


def test_rclone_with_what_others_put(run: Run, rclone: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    source = tree / "sizes" / "largest"
    with source.open("rb") as file:
        etag = s3.put_object(Bucket=bucket, Key="k", Body=file)["ETag"]
    assert etag.endswith('-crc64nvme"')
    said = with_messages(run, rclone)("copy", f"s:{bucket}", tmp_path / "back")
    assert digest(tmp_path / "back" / "k") == digest(source)
    rclone("copyto", f"s:{bucket}/k", f"s:{bucket}/copy")
    assert etags(s3, bucket) == [etag.strip('"')] * 2
    assert not COMPLAINT.search(said), said
