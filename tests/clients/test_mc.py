"""MinIO's own client `mc`, where it is on the PATH: each command of its guide that works, and what the others say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway, client

MC = shutil.which("mc")
pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(
        MC is None or "minio" not in subprocess.run([MC, "--version"], capture_output=True, text=True).stdout.lower(),
        reason="MinIO's client mc is not on the PATH",
    ),
]
TARGETS = {"primary": {"kind": "webhook", "url": "http://127.0.0.1:9/"}}
ARN = "arn:minio:sqs::primary:webhook"
NOT_HERE = "this is not MinIO's admin API"

Mc = Callable[..., str]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    env = {"SLUICE_NOTIFY_TARGETS": json.dumps(TARGETS)}
    with Gateway(tmp_path_factory.mktemp("mc") / "data", workers=1, env=env) as running:
        yield running


@pytest.fixture(scope="module")
def mc(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Mc:
    """Runs `mc` with words; returns what it printed. `fails`: it must not succeed."""
    home = tmp_path_factory.mktemp("home")

    def run(line: str, *, fails: bool = False) -> str:
        words = [MC or "mc", "--no-color", "--disable-pager", "--config-dir", str(home), *line.split()]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=60, cwd=home, env={**os.environ, "HOME": str(home)}
        )
        assert (done.returncode != 0) is fails, (line, done.stdout, done.stderr)
        return done.stdout + done.stderr

    run(f"alias set here {gateway.endpoint} {ACCESS_KEY} {SECRET_KEY}")
    (home / "policy.json").write_text(
        json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": ["arn:aws:s3:::bucket"]}],
            }
        )
    )
    return run


def test_users_and_policies(gateway: Gateway, mc: Mc) -> None:
    assert "is ready" in mc("ready here")
    mc("mb --ignore-existing here/bucket")
    mc("admin user add here alice alice-secret")
    mc("admin policy create here lists policy.json")
    assert "s3:ListBucket" in mc("admin policy info here lists")
    assert {"lists", "readonly", "readwrite"} <= set(mc("admin policy list here").split())
    mc("admin policy attach here lists --user alice")
    assert "lists" in mc("admin user info here alice")
    assert "enabled    alice" in mc("admin user list here")
    assert "alice" in mc("admin policy entities here --policy readonly --policy lists")
    mc(f"alias set alice {gateway.endpoint} alice alice-secret")
    mc("ls alice/bucket")
    assert "not authorized" in mc("admin user list alice", fails=True)
    mc("admin user disable here alice")
    mc("ls alice/bucket", fails=True)
    mc("admin user enable here alice")
    mc("admin group add here staff alice")
    mc("admin policy attach here writeonly --group staff")
    assert "writeonly" in mc("admin group info here staff")
    mc("admin policy detach here lists --user alice")
    mc("ls alice/bucket", fails=True)
    mc("admin policy remove here lists")
    mc("admin user remove here alice")
    assert "alice" not in mc("admin user list here")


def test_service_accounts(gateway: Gateway, mc: Mc) -> None:
    mc("admin user add here carol carol-secret")
    mc("admin policy attach here readwrite --user carol")
    mc("admin user svcacct add here carol --access-key carol-1 --secret-key carol-secret-1")
    assert "carol-1" in mc("admin user svcacct list here carol")
    assert "ParentUser: carol" in mc("admin user svcacct info here carol-1")
    mc("admin user svcacct edit here carol-1 --secret-key carol-secret-2")
    mc(f"alias set key {gateway.endpoint} carol-1 carol-secret-2")
    mc("ls key")
    mc("admin user svcacct disable here carol-1")
    mc("ls key", fails=True)
    mc("admin user svcacct enable here carol-1")
    mc("admin user svcacct rm here carol-1")
    mc("admin accesskey create here carol --access-key carol-2 --secret-key carol-secret-2")
    assert "carol-2" in mc("admin accesskey list here carol")
    assert "carol" in mc("admin accesskey info here carol-2")
    mc("admin accesskey rm here carol-2")
    assert "carol-2" not in mc("admin accesskey list here carol")


def test_buckets(gateway: Gateway, mc: Mc) -> None:
    s3: Any = client(gateway.endpoint)
    mc("mb here/files")
    assert "BlockPublicPolicy" in mc("anonymous set download here/files", fails=True)
    s3.delete_public_access_block(Bucket="files")
    mc("anonymous set download here/files")
    assert "`download`" in mc("anonymous get here/files")
    mc("anonymous set none here/files")
    mc("quota set here/files --size 1MiB")
    assert "1.0 MiB" in mc("quota info here/files")
    mc("quota clear here/files")
    mc(f"event add here/files {ARN} --event put,delete")
    assert ARN in mc("event list here/files")
    mc(f"event remove here/files {ARN} --event put,delete")
    assert ARN not in mc("event list here/files")
    assert "not supported" in mc("watch here/files")
    assert "1 Bucket" in mc("admin info here") or "Buckets" in mc("admin info here")


@pytest.mark.parametrize(
    "line",
    [
        "admin config get here",
        "admin heal here",
        "admin service stop here --json",
        "admin replicate info here",
        "admin kms key status here",
        "batch list here",
        "ilm tier ls here",
    ],
)
def test_other_commands_say_that_they_are_not_there(mc: Mc, line: str) -> None:
    assert NOT_HERE in mc(line, fails=True)
