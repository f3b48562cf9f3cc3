"""`sluice server`: what MinIO's command line becomes, and what of it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from sluice_s3.app.cli import server
from sluice_s3.app.cli.main import cli
from sluice_s3.app.settings import Settings


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings of servers that would have been started."""
    found: list[Settings] = []

    def start(settings: Settings, **options: Any) -> None:
        assert options == {"allow_well_known": True}
        found.append(settings)

    monkeypatch.setattr(server, "start", start)
    monkeypatch.setattr(server, "begin", lambda *_, **__: None)
    return found


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(cli, ["server", *arguments], env=environment)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give the directory of the data"),
        (["/a", "/b"], "2 directories are erasure coding"),
        (["/data{1...4}"], "erasure coding"),
        (["http://one/data"], "give one directory"),
        (["--ftp=address=:8021", "/a"], "--ftp=address=:8021 is an option of MinIO"),
        (["/a", "--sftp", "address=:8022"], "--sftp is an option of MinIO"),
        (["/a", "--address", "9000"], "--address: '9000' is not HOST:PORT"),
        (["/a", "--console-address", ":x"], "--console-address: ':x' is not HOST:PORT"),
        (["/a", "--address", ":99999"], "port: Input should be less than"),
    ],
)
def test_what_is_refused_is_one_line(started: list[Settings], arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert said in result.stderr
    assert started == []


def test_addresses(started: list[Settings], tmp_path: Path) -> None:
    data = str(tmp_path)
    assert run(data).exit_code == 0
    run("--address", ":9100", data, "--console-address", ":9101", SLUICE_ADMIN_HOST="10.0.0.1")
    run(MINIO_VOLUMES=data, MINIO_ADDRESS="[::1]:9100", MINIO_CONSOLE_ADDRESS="0.0.0.0:9101")
    run(data, SLUICE_ADMIN_PORT="9002", SLUICE_HOST="127.0.0.2")
    assert [(one.data, one.host, one.port, one.admin_host, one.admin_port) for one in started] == [
        (tmp_path, "127.0.0.1", 9000, "127.0.0.1", 0),
        (tmp_path, "0.0.0.0", 9100, "10.0.0.1", 9101),
        (tmp_path, "::1", 9100, "0.0.0.0", 9101),
        (tmp_path, "127.0.0.2", 9000, "127.0.0.1", 9002),
    ]


def test_new_buckets_block_no_public_access_unless_told(started: list[Settings], tmp_path: Path) -> None:
    run(str(tmp_path))
    run(str(tmp_path), SLUICE_DEFAULT_PUBLIC_ACCESS_BLOCK="true")
    assert [one.default_public_access_block for one in started] == [False, True]


def test_quiet(started: list[Settings], tmp_path: Path) -> None:
    run(str(tmp_path))
    run("--quiet", str(tmp_path))
    run("--quiet", str(tmp_path), SLUICE_ACCESS_LOG="true")
    assert [one.access_log for one in started] == [True, False, True]


def test_keys(started: list[Settings], tmp_path: Path) -> None:
    run(str(tmp_path))
    run(str(tmp_path), MINIO_ROOT_USER="somebody")  # half a pair is refused at the start
    (tmp_path / "credentials").touch()  # those of `sluice serve` stay
    run(str(tmp_path))
    assert [(one.root_access_key, one.root_secret_key) for one in started[1:]] == [("somebody", None), (None, None)]
    secret = started[0].root_secret_key
    assert secret is not None
    assert (started[0].root_access_key, secret.get_secret_value()) == ("minioadmin", "minioadmin")


def test_a_directory_of_certificates(started: list[Settings], tmp_path: Path) -> None:
    run(str(tmp_path), "--certs-dir", str(tmp_path / "certs"))
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs" / "public.crt").touch()
    run(str(tmp_path), "-S", str(tmp_path / "certs"))
    assert [one.tls_cert for one in started] == [None, tmp_path / "certs" / "public.crt"]
    assert started[1].tls_key == tmp_path / "certs" / "private.key"


def test_directories_in_the_data(started: list[Settings], tmp_path: Path) -> None:
    for name in ("langfuse", "photos/2026", "index", "Not_A_Bucket", "events"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("events")
    (tmp_path / "logs").touch()
    result = run(str(tmp_path), MINIO_DEFAULT_BUCKETS="first:public")
    assert started[0].default_buckets == "first:public,events,langfuse"
    assert result.stderr.count("\n") == 1
    assert f"directories of {tmp_path} hold files that are no objects, and are left alone: photos (" in result.stderr
    (tmp_path / ".minio.sys").mkdir()
    result = run(str(tmp_path))
    assert (result.exit_code, len(started)) == (1, 1)
    assert f"{tmp_path} holds data in MinIO's own format" in result.stderr
