"""Clients on a bucket that keeps versions and encrypts what it is given, and with keys of their own."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.clients.files import Run, digest, digests, stored
from tests.clients.test_aws_cli import aws
from tests.clients.test_s3fs import mounted

pytestmark = pytest.mark.clients
__all__ = ["aws", "mounted"]
SECRET = bytes(range(32))


@pytest.fixture
def bucket(s3: Any, bucket: str) -> str:
    """A bucket that keeps versions and has a default encryption."""
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
    return bucket


def methods(s3: Any, bucket: str) -> set[str | None]:
    """How the objects are encrypted."""
    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    return {s3.head_object(Bucket=bucket, Key=key).get("ServerSideEncryption") for key in keys}


def test_rclone_syncs_and_checks(rclone: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    local = tmp_path / "local"
    shutil.copytree(tree, local)
    rclone("sync", local, f"s:{bucket}")
    (local / "names" / "plain.txt").write_text("changed")
    (local / "sizes" / "one").unlink()
    rclone("sync", local, f"s:{bucket}")
    rclone("check", local, f"s:{bucket}")
    rclone("check", "--download", local, f"s:{bucket}")
    assert stored(s3, bucket) == digests(local)
    assert methods(s3, bucket) == {"AES256"}
    found = s3.list_object_versions(Bucket=bucket)
    assert len(found["Versions"]) == len(digests(local)) + 2
    assert [marker["Key"] for marker in found["DeleteMarkers"]] == ["sizes/one"]
    (older,) = [one for one in found["Versions"] if one["Key"] == "sizes/one"]
    got = s3.get_object(Bucket=bucket, Key="sizes/one", VersionId=older["VersionId"])["Body"].read()
    assert got == (tree / "sizes" / "one").read_bytes()
    source = tree / "sizes" / "largest"
    rclone("copyto", "--s3-upload-cutoff", "6M", "--s3-chunk-size", "5M", source, f"s:{bucket}/large")
    rclone("moveto", "--s3-copy-cutoff", "6M", "--s3-chunk-size", "5M", f"s:{bucket}/large", f"s:{bucket}/moved")
    rclone("copyto", f"s:{bucket}/moved", tmp_path / "back")
    assert digest(tmp_path / "back") == digest(source)


def test_rclone_with_a_key_of_kms(rclone: Run, s3: Any, bucket: str, tree: Path) -> None:
    options = ("--s3-server-side-encryption", "aws:kms")
    rclone("sync", *options, tree, f"s:{bucket}")
    rclone("check", "--download", *options, tree, f"s:{bucket}")
    assert stored(s3, bucket) == digests(tree)
    assert methods(s3, bucket) == {"aws:kms"}


def test_rclone_with_a_key_of_its_own(
    rclone: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "packaged" in request.node.name:
        pytest.skip("the older rclone sends keys over TLS only")
    text = base64.b64encode(SECRET).decode()
    options = ("--s3-sse-customer-algorithm", "AES256", "--s3-sse-customer-key-base64", text)
    rclone("sync", *options, "--s3-upload-cutoff", "6M", "--s3-chunk-size", "5M", tree / "sizes", f"s:{bucket}")
    rclone("sync", *options, f"s:{bucket}", tmp_path / "back")
    assert digests(tmp_path / "back") == digests(tree / "sizes")
    given = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": SECRET}
    got = s3.get_object(Bucket=bucket, Key="block", **given)
    assert got["Body"].read() == (tree / "sizes" / "block").read_bytes()


def test_aws_with_keys_of_each_kind(aws: Run, bucket: str, tree: Path, tmp_path: Path) -> None:
    source = tree / "sizes" / "largest"
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    ways = {
        "s3": (("--sse", "AES256"), ()),
        "kms": (("--sse", "aws:kms"), ()),
        "customer": (("--sse-c", "AES256", "--sse-c-key", f"fileb://{secret}"),) * 2,
    }
    for name, (write, read) in ways.items():
        aws("s3", "cp", *write, source, f"s3://{bucket}/{name}")
        aws("s3", "cp", *read, f"s3://{bucket}/{name}", tmp_path / name)
        assert digest(tmp_path / name) == digest(source)
    shown = aws("s3api", "get-bucket-encryption", "--bucket", bucket, "--output", "text")
    assert "AES256" in shown


def test_s3fs(mounted: Path, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    shutil.copytree(tree, mounted / "in")
    files = {key: value for key, value in stored(s3, bucket, "in/").items() if key and not key.endswith("/")}
    assert files == digests(tree)
    (mounted / "in" / "names" / "plain.txt").write_text("changed")
    assert (mounted / "in" / "names" / "plain.txt").read_text() == "changed"
    shutil.copytree(mounted / "in" / "sizes", tmp_path / "out")
    assert digests(tmp_path / "out") == digests(tree / "sizes")
    assert methods(s3, bucket) == {"AES256"}
