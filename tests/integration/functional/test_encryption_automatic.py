"""SSE-S3 without any setting: the master key that the first start on SQLite makes."""

from __future__ import annotations

import base64
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.functional.test_inventory import sealed
from tests.integration.functional.test_versioning import refused
from tests.support import postgres
from tests.support.gateway import Gateway, client

OTHER = base64.b64encode(bytes(32)).decode()
S3: dict[str, Any] = {"ServerSideEncryption": "AES256"}
PART = bytes(range(256)) * 20480

pytestmark = pytest.mark.skipif(postgres.CHOSEN == "postgres", reason="a Postgres index wants a key that is given")


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """One with its settings untouched, which was stopped after it encrypted an object."""
    made = Gateway(tmp_path / "data", workers=1)
    with made:
        s3 = client(made.endpoint)
        s3.create_bucket(Bucket="bucket")
        assert s3.put_object(Bucket="bucket", Key="k", Body=b"body", **S3)["ServerSideEncryption"] == "AES256"
    yield made
    made.__exit__()


def key_of(gateway: Gateway) -> Path:
    return gateway.data / "master-key"


def log_of(gateway: Gateway) -> str:
    return (gateway.data.parent / f"{gateway.data.name}.log").read_text()


def refusal(gateway: Gateway, **env: str) -> str:
    """What a start says that must not be."""
    gateway.env = env
    before = len(log_of(gateway))
    with pytest.raises(RuntimeError):
        gateway.start()
    return log_of(gateway)[before:]


def check_body(gateway: Gateway, **env: str) -> None:
    gateway.env = env
    with gateway:
        assert client(gateway.endpoint).get_object(Bucket="bucket", Key="k")["Body"].read() == b"body"


def test_the_first_start_makes_a_master_key(gateway: Gateway) -> None:
    """It stays the same over restarts and a rebuild, is told of in one line of the log, and is never shown."""
    key = key_of(gateway)
    text = key.read_text()
    assert len(base64.b64decode(text, validate=False)) == 32
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert not list(gateway.data.glob(".master-key*"))
    (line,) = re.findall(r"^INFO .*encryption: .*", log_of(gateway), re.M)
    assert str(key) in line
    assert all(told in line for told in ("back that up", "apart from the data", "are lost"))
    with gateway:
        s3 = client(gateway.endpoint)
        assert s3.put_object(Bucket="bucket", Key="plain", Body=b"plain").get("ServerSideEncryption") is None
        refused(s3.get_bucket_encryption, 404, "ServerSideEncryptionConfigurationNotFoundError", Bucket="bucket")
        s3.put_bucket_inventory_configuration(Bucket="bucket", Id="list", InventoryConfiguration=sealed("bucket"))
        rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
        s3.put_bucket_encryption(Bucket="bucket", ServerSideEncryptionConfiguration={"Rules": [rule]})
        copied = s3.copy_object(Bucket="bucket", Key="copy", CopySource="bucket/plain")
        assert copied["ServerSideEncryption"] == "AES256"
        kms = s3.put_object(Bucket="bucket", Key="kms", Body=b"kms", ServerSideEncryption="aws:kms")
        assert kms["SSEKMSKeyId"].endswith("key/aws-s3")
        upload = s3.create_multipart_upload(Bucket="bucket", Key="large", **S3)["UploadId"]
        of = {"Bucket": "bucket", "Key": "large", "UploadId": upload}
        parts = [
            {"PartNumber": number, "ETag": s3.upload_part(**of, PartNumber=number, Body=body)["ETag"]}
            for number, body in enumerate((PART, b"end"), 1)
        ]
        done = s3.complete_multipart_upload(**of, MultipartUpload={"Parts": parts})
        assert done["ServerSideEncryption"] == "AES256"
    assert gateway.run("fsck", check=False).returncode == 0
    gateway.run("rebuild", "--replace")
    with gateway:
        s3 = client(gateway.endpoint)
        for name, body in {
            "k": b"body",
            "plain": b"plain",
            "copy": b"plain",
            "kms": b"kms",
            "large": PART + b"end",
        }.items():
            found = s3.get_object(Bucket="bucket", Key=name)
            assert found["Body"].read() == body
            wanted = {"plain": None, "kms": "aws:kms"}.get(name, "AES256")
            assert found.get("ServerSideEncryption") == wanted
    assert key.read_text() == text
    assert text.strip() not in log_of(gateway)
    assert log_of(gateway).count("encryption: ") == 1


def test_a_lost_master_key_is_never_replaced(gateway: Gateway) -> None:
    key = key_of(gateway)
    text = key.read_text()
    key.unlink()
    assert f"{key} is missing" in refusal(gateway)
    assert not key.exists()
    assert gateway.run("key", "list", check=False).returncode == 1
    key.touch(0o600)
    key.write_text("damaged")
    assert "is not 32 bytes as base64" in refusal(gateway)
    key.write_text(text)
    assert f"SLUICE_MASTER_KEY_FILE={key}" in refusal(gateway, SLUICE_MASTER_KEY_AUTO="false")
    check_body(gateway)


def test_another_master_key_takes_its_place(gateway: Gateway, tmp_path: Path) -> None:
    """The refusal names the command, which works with the settings that were refused."""
    other = tmp_path / "other"
    other.write_text(OTHER)
    told = refusal(gateway, SLUICE_MASTER_KEY_FILE=str(other))
    assert "another master key" in told
    assert "`sluice key reseal FILE`" in told
    said = gateway.run("key", "reseal", str(other)).stdout
    assert f"SLUICE_MASTER_KEY_FILE={other}" in said
    assert f"{key_of(gateway)} may go" in said
    assert "another master key" in refusal(gateway)
    check_body(gateway, SLUICE_MASTER_KEY_FILE=str(other))
    key_of(gateway).unlink()
    check_body(gateway, SLUICE_MASTER_KEY_FILE=str(other))
    assert not key_of(gateway).exists()


def test_a_ring_without_its_master_key_is_given_up_only_by_command(gateway: Gateway) -> None:
    assert gateway.run("key", "new-ring", check=False).returncode == 2
    ended = gateway.run("key", "new-ring", "--give-up-encrypted", check=False)
    assert (ended.returncode, "nothing is lost" in ended.stderr) == (1, True)
    old = key_of(gateway).read_text()
    key_of(gateway).unlink()
    gateway.run("key", "new-ring", "--give-up-encrypted")
    assert key_of(gateway).read_text() != old
    with gateway:
        s3 = client(gateway.endpoint)
        refused(s3.get_object, 503, "ServiceUnavailable", Bucket="bucket", Key="k")
        s3.put_object(Bucket="bucket", Key="new", Body=b"new", **S3)
    gateway.run("rebuild", "--replace")
    with gateway:
        assert client(gateway.endpoint).get_object(Bucket="bucket", Key="new")["Body"].read() == b"new"


def test_a_store_of_before_gets_one_at_its_next_start(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data", workers=1, env={"SLUICE_MASTER_KEY_AUTO": "false"})
    with gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket="bucket")
        s3.put_object(Bucket="bucket", Key="k", Body=b"body")
        refused(s3.put_object, 501, "NotImplemented", Bucket="bucket", Key="k", Body=b"body", **S3)
    check_body(gateway, SLUICE_DEFAULT_ENCRYPTION="AES256")
    assert key_of(gateway).exists()
