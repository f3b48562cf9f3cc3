"""MinIO's set-ups in containers of the image, by podman; `test_minio_setups.py` has them as processes.

Skipped where podman or the image is missing, which `SLUICE_IMAGE` names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from sluice_s3.loadtests.common.targets import free_port
from tests.support.gateway import client
from tests.support.waiting import eventually

IMAGE = os.environ.get("SLUICE_IMAGE", "localhost/sluice:latest")
NAME = f"sluice-minio-{os.getpid()}"


def podman(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["podman", *arguments], capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(autouse=True)
def needed() -> Iterator[None]:
    """The image; nothing of the test's is left."""
    if shutil.which("podman") is None or podman("image", "exists", IMAGE).returncode:
        pytest.skip(f"podman or the image {IMAGE} is not here")
    yield
    podman("rm", "--force", "--volumes", "--time", "5", NAME)


@contextmanager
def running(*command: str, options: tuple[str, ...] = ()) -> Iterator[str]:
    """A container of the image; the value is its endpoint."""
    port = free_port()
    started = podman("run", "--detach", "--name", NAME, "-p", f"127.0.0.1:{port}:9000", *options, *command)
    assert started.returncode == 0, started.stderr
    endpoint = f"http://127.0.0.1:{port}"
    eventually(lambda: _is_live(endpoint))
    yield endpoint


def _is_live(endpoint: str) -> bool:
    try:
        return httpx.get(f"{endpoint}/minio/health/live", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def test_a_command_of_minio_as_any_user() -> None:
    options = ("--user", "4321:0", "-e", "MINIO_ACCESS_KEY=minioadmin", "-e", "MINIO_SECRET_KEY=minioadmin")
    with running(IMAGE, "server", "/data", "--address", ":9000", options=options) as endpoint:
        s3 = client(endpoint, "minioadmin", "minioadmin")
        s3.create_bucket(Bucket="test")
        s3.put_object(Bucket="test", Key="k", Body=b"x")
        checked = podman("exec", NAME, "curl", "-f", "http://localhost:9000/minio/health/ready")
        assert (checked.returncode, checked.stdout) == (0, "up\n")


def test_a_shell_that_makes_a_bucket() -> None:
    script = 'mkdir -p /data/langfuse && minio server --address ":9000" --console-address ":9001" /data'
    options = ("--entrypoint", "sh", "-e", "MINIO_ROOT_USER=minio", "-e", "MINIO_ROOT_PASSWORD=miniosecret")
    with running(IMAGE, "-c", script, options=options) as endpoint:
        buckets = client(endpoint, "minio", "miniosecret").list_buckets()["Buckets"]
        assert [bucket["Name"] for bucket in buckets] == ["langfuse"]
        assert podman("exec", NAME, "mc", "ready", "local").returncode == 0


def test_a_directory_of_roots_is_refused_with_what_helps(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has directories of root's")
    (tmp_path / "data").mkdir(mode=0o755)
    ended = podman("run", "--name", NAME, "-v", f"{tmp_path}/data:/minio_data", IMAGE, "minio", "server", "/minio_data")
    assert ended.returncode == 1
    assert "/minio_data belongs to user 0 (mode 755), and this runs as user 10001: make all of it" in ended.stderr
    assert "(chown -R 10001:10001 /minio_data), or run as its owner (in a container: --user 0:0)" in ended.stderr
    podman("rm", NAME)
    os.chown(tmp_path / "data", 10001, 10001)
    with running(IMAGE, "minio", "server", "/minio_data", options=("-v", f"{tmp_path}/data:/minio_data")):
        pass
