"""Exports that give less than a disk: no room, a quota, no right for root; and options of a mount that cost data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sluice_s3.storage_drivers.errors import StoreFailed
from sluice_s3.storage_drivers.identity import lock_store
from tests.reliability.nfs.mounts import APART, forget, gateway_on, mounted
from tests.support.gateway import client
from tests.support.waiting import eventually

BUCKET = "nfs-bucket"
BODY = b"0123456789abcdef" * (1 << 16)
"""One MiB."""
MOST = 200


def probe(path: Path) -> dict[str, Any]:
    """What `sluice probe` says of a mount."""
    done = subprocess.run(
        [sys.executable, "-m", "sluice_s3.app.cli", "probe", "--json", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("version", ["4.2", "4.1", "3"])
def test_the_probe_chooses_the_driver(tmp_path: Path, version: str) -> None:
    with mounted(tmp_path / "mount", options=f"vers={version},hard") as mount:
        found = probe(mount)
    assert found["mount"]["driver"] == "efs"
    assert found["refused"] == {"full": None, "relaxed": None}
    failed = {name for name, trial in found["trials"].items() if trial["works"] is False}
    print(f"{version}: cannot {sorted(failed)}; {found['latencies_ms']}")
    assert found["warnings"] == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("vers=4.2,soft", ["soft"]),
        ("vers=3,soft", ["soft"]),
        ("vers=4.2,hard,nocto", ["nocto"]),
        ("vers=3,hard,nolock", ["nolock"]),
        ("vers=4.2,hard,local_lock=all", []),
        ("vers=4.2,hard,noac", []),
    ],
)
def test_the_probe_warns(tmp_path: Path, options: str, named: list[str]) -> None:
    with mounted(tmp_path / "mount", options=options) as mount:
        warnings = probe(mount)["warnings"]
    assert [warning.partition(":")[0] for warning in warnings] == named


@pytest.mark.parametrize("export", ["/small", "/squash"])
def test_a_full_export(tmp_path: Path, export: str) -> None:
    """A full disk, and a quota of the user to whom all are squashed: 507, everything is read, and a delete helps."""
    with mounted(tmp_path / "mount", export) as mount, gateway_on(mount, tmp_path) as gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket=BUCKET)
        keys = list(fill(s3))
        assert 5 < len(keys) < MOST
        forget()
        for key in keys:
            assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == BODY
        for key in keys[:10]:
            s3.delete_object(Bucket=BUCKET, Key=key)
        eventually(lambda: fits(s3), "room for another object")
        report = gateway.run("fsck", "--json", check=False)
        assert report.returncode == 0, report.stdout + report.stderr
        for key in keys[10:]:
            s3.delete_object(Bucket=BUCKET, Key=key)


def fill(s3: Any) -> Iterator[str]:
    """Put until there is no room; returns the keys of what was acknowledged."""
    for number in range(MOST):
        try:
            s3.put_object(Bucket=BUCKET, Key=f"key-{number:03}", Body=BODY)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != 507:
                raise
            return
        yield f"key-{number:03}"


def fits(s3: Any) -> bool:
    try:
        s3.put_object(Bucket=BUCKET, Key="more", Body=BODY)
    except ClientError:
        return False
    return True


def test_root_is_nobody(tmp_path: Path) -> None:
    """`root_squash`, which is usual, and a directory of root's: the start says what is forbidden."""
    with mounted(tmp_path / "mount", "/closed") as mount, pytest.raises(RuntimeError) as refused:
        gateway_on(mount, tmp_path).start()
    log = (tmp_path / "data.log").read_text()
    print(refused.value, log)
    assert "ermission denied" in log
    assert str(mount) in log
    assert "root_squash" in log
    assert "Traceback" not in log


@pytest.mark.parametrize("version", APART)
def test_a_rebuild_keeps_gateways_out(tmp_path: Path, version: str) -> None:
    """The lock on `store.json` is the server's, so that a rebuild by another mount sees who uses the store."""
    with ExitStack() as stack:
        mounts = [
            stack.enter_context(mounted(tmp_path / f"mount{number}", options=options))
            for number, options in enumerate(APART[version])
        ]
        root = mounts[0] / tmp_path.name
        with gateway_on(mounts[0], tmp_path), pytest.raises(StoreFailed, match="in use"):
            lock_store(mounts[1] / tmp_path.name, alone=True)
        alone = lock_store(mounts[1] / tmp_path.name, alone=True)
        assert alone is not None
        with pytest.raises(StoreFailed, match="being rebuilt"):
            lock_store(root, alone=False)
        os.close(alone)
