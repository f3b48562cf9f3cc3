"""What an operator chooses of encryption, and starts that must not be."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.integration.functional.conftest import MASTER
from tests.integration.functional.sealed import customer
from tests.integration.functional.test_inventory import sealed
from tests.integration.functional.test_versioning import refused
from tests.support import postgres
from tests.support.gateway import Gateway, client

OTHER = base64.b64encode(bytes(32)).decode()
SECRET = bytes(range(32))
WRITE = {"Bucket": "bucket", "Key": "k", "Body": b"body"}


@pytest.mark.parametrize("why", ["forbidden", "postgres"])
def test_without_a_master_key_customers_keys_work_alone(tmp_path: Path, why: str) -> None:
    data = tmp_path / "data"
    env = {"SLUICE_MASTER_KEY_AUTO": "false"} if why == "forbidden" else postgres.environment_here(data)
    with Gateway(data, workers=1, env=env) as gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket="bucket")
        for method in ("AES256", "aws:kms"):
            refused(s3.put_object, 501, "NotImplemented", **WRITE, ServerSideEncryption=method)
            rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": method}}
            wanted = {"ServerSideEncryptionConfiguration": {"Rules": [rule]}}
            refused(s3.put_bucket_encryption, 501, "NotImplemented", Bucket="bucket", **wanted)
        report = {"Id": "list", "InventoryConfiguration": sealed("bucket")}  # there is no key that could seal it
        refused(s3.put_bucket_inventory_configuration, 501, "NotImplemented", Bucket="bucket", **report)
        s3.put_object(**WRITE, **customer(SECRET))
        assert s3.get_object(Bucket="bucket", Key="k", **customer(SECRET))["Body"].read() == b"body"
        ended = gateway.run("key", "list", check=False)
        assert (ended.returncode, "no master key" in ended.stderr) == (1, True)
    assert not (data / "master-key").exists()


def test_the_master_key_is_wanted_again(tmp_path: Path) -> None:
    """And another one, after the ring was sealed anew."""
    gateway = Gateway(
        tmp_path / "data", workers=1, env={"SLUICE_MASTER_KEY": MASTER, "SLUICE_DEFAULT_ENCRYPTION": "AES256"}
    )
    with gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket="bucket")
        assert s3.put_object(**WRITE)["ServerSideEncryption"] == "AES256"
    other = tmp_path / "other"
    other.write_text(OTHER)
    for env, why in (
        ({}, "data/master-key is missing"),
        ({"SLUICE_MASTER_KEY_AUTO": "false"}, "wants its master key"),
        ({"SLUICE_MASTER_KEY_FILE": str(other)}, "another master key"),
    ):
        gateway.env = env
        with pytest.raises(RuntimeError):
            gateway.start()
        assert why in (tmp_path / "data.log").read_text()
        assert not (tmp_path / "data" / "master-key").exists(), "never a new key for an old ring"
    gateway.env = {"SLUICE_MASTER_KEY": MASTER}
    gateway.run("key", "reseal", str(other))
    with pytest.raises(RuntimeError):
        gateway.start()
    gateway.env = {"SLUICE_MASTER_KEY_COMMAND": f"cat {other}"}
    with gateway:
        assert client(gateway.endpoint).get_object(Bucket="bucket", Key="k")["Body"].read() == b"body"


def test_customers_keys_over_tls_only(tmp_path: Path) -> None:
    with Gateway(tmp_path / "data", workers=1, env={"SLUICE_CUSTOMER_KEYS_OVER_HTTP": "false"}) as gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket="bucket")
        refused(s3.put_object, 400, "InvalidRequest", **WRITE, **customer(SECRET))


def test_a_lost_index_is_made_anew_by_the_command(tmp_path: Path) -> None:
    """The ring comes back with it, written down before the first object was."""
    gateway = Gateway(tmp_path / "data", workers=1, env={"SLUICE_MASTER_KEY": MASTER})
    bodies = {"small": b"small", "large": bytes(range(256)) * 4000}
    ways = {"s3": {"ServerSideEncryption": "AES256"}, "kms": {"ServerSideEncryption": "aws:kms"}, "c": customer(SECRET)}
    with gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket="bucket")
        for name, way in ways.items():
            for key, body in bodies.items():
                s3.put_object(Bucket="bucket", Key=f"{key} {name}", Body=body, **way)
    for path in (tmp_path / "data" / "index").glob("sluice.db*"):
        path.unlink()
    gateway.run("rebuild")
    with gateway:
        s3 = client(gateway.endpoint)
        for name, way in ways.items():
            for key, body in bodies.items():
                read = way if name == "c" else {}
                assert s3.get_object(Bucket="bucket", Key=f"{key} {name}", **read)["Body"].read() == body


def test_plain_files_have_no_default(tmp_path: Path) -> None:
    stores = json.dumps({"files": {"path": str(tmp_path / "files"), "layout": "tree"}})
    env = {"SLUICE_MASTER_KEY": MASTER, "SLUICE_DEFAULT_ENCRYPTION": "AES256", "SLUICE_STORES": stores}
    env |= {"SLUICE_DEFAULT_BUCKETS": "made-at-start"}
    with Gateway(tmp_path / "data", workers=1, env=env, given=()) as gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket="bucket")
        for bucket in ("bucket", "made-at-start"):
            code = "ServerSideEncryptionConfigurationNotFoundError"
            refused(s3.get_bucket_encryption, 404, code, Bucket=bucket)
            s3.put_object(Bucket=bucket, Key="k", Body=b"body")
            assert (tmp_path / "files" / bucket / "k").read_bytes() == b"body"
        refused(s3.put_object, 501, "NotImplemented", **WRITE, **customer(SECRET))
