"""Set-ups of others that start MinIO: their command and environment, with this image's entry point, as processes.

What differs from them: the directory of the data, and port 0 for 9000 and 9001, which others may have.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from sluice_s3.app.default_buckets import canned_policy
from sluice_s3.app.settings import minio
from tests.support.environment import PYTHONPATH, ROOT
from tests.support.gateway import READY, client

ENTRYPOINT = ROOT / "deploy" / "entrypoint.sh"
MC = ROOT / "deploy" / "mc"
WARNING = "WARNING: the keys of this gateway are well-known ones"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with `sluice` and its link `minio`, as the image has them."""
    programs = tmp_path / "bin"
    programs.mkdir()
    script = f'#!/bin/sh\nPYTHONPATH={PYTHONPATH} exec {sys.executable} -m sluice_s3.app.cli "$@"\n'
    (programs / "sluice").write_text(script)
    (programs / "sluice").chmod(0o755)
    (programs / "minio").symlink_to("sluice")
    return f"{programs}:{os.environ['PATH']}"


@contextmanager
def started(path: str, command: list[str], log: Path, **environment: str) -> Iterator[str]:
    """Run what a container would; the value is its endpoint."""
    settings = {"SLUICE_PORT": "0", "SLUICE_WORKERS": "1", "SLUICE_ACCESS_LOG": "false", **environment}
    with log.open("w") as errors:
        process = subprocess.Popen(
            [str(ENTRYPOINT), *command],
            env={**os.environ, "PATH": path, **settings},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    try:
        found = next(filter(None, map(READY.search, process.stdout)), None)
        assert found is not None, log.read_text()
        yield found[1].replace("0.0.0.0", "127.0.0.1")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
        process.stdout.close()


def works(endpoint: str, access_key: str, secret_key: str, bucket: str) -> list[str]:
    """Whether health checks and S3 answer; the buckets before one more was made."""
    for name in ("live", "ready", "cluster"):
        assert httpx.get(f"{endpoint}/minio/health/{name}").status_code == 200
    s3 = client(endpoint, access_key, secret_key)
    before = [entry["Name"] for entry in s3.list_buckets()["Buckets"]]
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"body"
    s3.put_bucket_policy(Bucket=bucket, Policy=canned_policy(bucket, "download"))  # `mc anonymous set download`
    assert httpx.get(f"{endpoint}/{bucket}/k").content == b"body"
    return before


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ([], "sluice"),
        (["serve"], "sluice serve"),
        (["server", "/data", "--address", ":9000"], "sluice server /data --address :9000"),
        (["fsck", "--data", "/data"], "sluice fsck --data /data"),  # not the program of that name
        (["--version"], "sluice --version"),
        (["sluice", "version"], "sluice version"),
        (["minio", "server", "/a b"], "minio server /a b"),
        (["sh", "-c", "minio server /data"], "minio server /data"),
        (["/bin/echo", "anything"], "anything"),
    ],
)
def test_the_entry_point(tmp_path: Path, command: list[str], runs: str) -> None:
    for name in ("sluice", "minio"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin"}
    ran = subprocess.run([str(ENTRYPOINT), *command], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == runs


def test_the_image_has_this_entry_point_and_both_names() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["tini", "--", "/opt/deploy/entrypoint.sh"]\nCMD ["serve"]' in text
    assert "ln -s sluice /opt/sluice/bin/minio" in text
    assert "deploy/entrypoint.sh" in text
    assert os.access(ENTRYPOINT, os.X_OK)


def test_testcontainers_python(path: str, tmp_path: Path) -> None:
    keys = {"MINIO_ACCESS_KEY": "minioadmin", "MINIO_SECRET_KEY": "minioadmin"}
    log = tmp_path / "log"
    with started(path, ["server", str(tmp_path / "data"), "--address", ":0"], log, **keys) as endpoint:
        works(endpoint, "minioadmin", "minioadmin", "test")
    assert log.read_text().count(WARNING) == 1


def test_testcontainers_java_with_its_defaults(path: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with started(path, ["server", "--console-address", ":0", str(tmp_path / "data")], log) as endpoint:
        works(endpoint, "minioadmin", "minioadmin", "test")
    assert log.read_text().count(WARNING) == 1
    assert not (tmp_path / "data" / "credentials").exists()


def test_milvus(path: str, tmp_path: Path) -> None:
    (tmp_path / "minio_data").mkdir()
    command = ["minio", "server", str(tmp_path / "minio_data"), "--console-address", ":0"]
    keys = {"MINIO_ACCESS_KEY": "minioadmin", "MINIO_SECRET_KEY": "minioadmin"}
    with started(path, command, tmp_path / "log", MINIO_PROMETHEUS_AUTH_TYPE="public", **keys) as endpoint:
        works(endpoint, "minioadmin", "minioadmin", "a-bucket")
        assert "sluice_store_up" in httpx.get(f"{endpoint}/minio/v2/metrics/cluster").text


def test_langfuse_where_a_directory_is_a_bucket(path: str, tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    command = ["sh", "-c", f'mkdir -p {data}/langfuse && minio server --address ":0" --console-address ":0" {data}']
    keys = {"MINIO_ROOT_USER": "minio", "MINIO_ROOT_PASSWORD": "miniosecret"}
    with started(path, command, log, MINIO_BROWSER="off", **keys) as endpoint:
        assert works(endpoint, "minio", "miniosecret", "more") == ["langfuse"]
        auto = client(endpoint, "minio", "miniosecret", region="auto")  # JavaScript's SDK follows no region
        auto.put_object(Bucket="langfuse", Key="events/k", Body=b"x")
        health = {"PATH": os.environ["PATH"], "SLUICE_PORT": endpoint.rpartition(":")[2]}
        assert subprocess.run([MC, "ready", "local"], env=health).returncode == 0
        assert subprocess.run([MC, "ls", "local"], env=health).returncode == 1
    assert subprocess.run([MC, "ready", "local"], env=health).returncode == 1
    said = log.read_text()
    assert WARNING not in said
    assert re.findall("change nothing here: (.*)", said) == ["MINIO_BROWSER"]


def test_the_guide_has_every_variable() -> None:
    guide = (ROOT / "docs" / "guides" / "from-minio.md").read_text()
    rows = re.findall(r"^\| (`MINIO_.*`) \| `SLUICE_(\w+)` \|$", guide, re.M)
    assert {own.lower(): tuple(re.findall("`(.*?)`", names)) for names, own in rows} == minio.NAMES
