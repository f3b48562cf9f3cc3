"""Group I: what another user of the machine left where the gateway looks for its own files."""

from __future__ import annotations

import asyncio
import os
import pwd
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sluice_s3.app.access.root_credentials import admin_token, root_credentials
from sluice_s3.app.cli.main import cli
from sluice_s3.app.encryption.keyring import RingError
from sluice_s3.app.encryption.master_key import read_file
from sluice_s3.app.index import open_index
from sluice_s3.app.private_files import UnsafeFile
from sluice_s3.app.settings import ConfigError, Settings
from tests.integration.negative.test_i_operations import serve

POSTGRES = "postgresql://nobody@127.0.0.1:1/none"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


def plant(path: Path, mode: int) -> None:
    """Make a file or directory the attacker's."""
    os.chown(path, pwd.getpwnam("nobody").pw_uid, -1, follow_symlinks=False)
    path.chmod(mode)


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of temporary files, for all users."""
    path = tmp_path / "tmp"
    path.mkdir()
    path.chmod(0o1777)
    monkeypatch.setattr("tempfile.tempdir", str(path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return path


@needs_root
def test_i97_links_in_a_planted_runtime_directory(tmp_path: Path, shared: Path) -> None:
    settings = Settings.model_validate({"data": tmp_path / "data", "index": POSTGRES})
    assert settings.run_dir.parent == shared
    settings.run_dir.mkdir()
    plant(settings.run_dir, 0o777)
    victims = {name: tmp_path / f"victim-of-{name}" for name in ("server.lock", "generation")}
    for name, victim in victims.items():
        victim.write_bytes(b"VICTIM--")
        (settings.run_dir / name).symlink_to(victim)
    ended = serve(tmp_path / "data", {"SLUICE_INDEX": POSTGRES, "TMPDIR": str(shared), "XDG_RUNTIME_DIR": ""})
    assert {victim.read_bytes() for victim in victims.values()} == {b"VICTIM--"}
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line.startswith("sluice: another user may have made this runtime directory")
    assert str(settings.run_dir) in line
    assert "SLUICE_RUNTIME_DIR" in line


@needs_root
def test_i97_planted_keys_and_tokens(shared: Path) -> None:
    stores = {"one": {"url": "memory://one", "driver": "fsspec", "durability": "relaxed"}}
    settings = Settings.model_validate({"stores": stores, "index": POSTGRES})
    assert settings.home == settings.run_dir
    settings.home.mkdir()
    (settings.home / "credentials").write_text('{"access_key": "ATTACKERKEY", "secret_key": "attacker-secret"}')
    (settings.home / "admin-token").write_text("attackertoken")
    for path in (settings.home, *settings.home.iterdir()):
        plant(path, 0o700 if path == settings.home else 0o600)
    with pytest.raises(UnsafeFile, match="credentials"):
        root_credentials(settings)
    with pytest.raises(UnsafeFile, match="admin-token"):
        admin_token(settings)


@needs_root
def test_i97_a_planted_index(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "index").mkdir(parents=True)
    data.chmod(0o777)
    (data / "index" / "sluice.db").touch()
    for path in (data / "index", data / "index" / "sluice.db"):
        plant(path, 0o755)
    ended = CliRunner().invoke(cli, ["user", "list", "--data", str(data)])
    assert ended.exit_code == 1
    assert "another user may have made" in ended.output
    index = open_index(Settings(data=data, runtime_dir=tmp_path / "run"))
    with pytest.raises(Exception, match=r"belongs to user .*sluice\.db"):
        asyncio.run(index.start(migrate=True))


@pytest.mark.parametrize(
    "text",
    ["not JSON", "[]", "{}", '{"access_key": 1, "secret_key": 2}', '{"access_key": "", "secret_key": ""}', "[" * 9999],
)
def test_i97_credentials_that_hold_no_keys(tmp_path: Path, text: str) -> None:
    (tmp_path / "credentials").touch(mode=0o600)
    (tmp_path / "credentials").write_text(text)
    with pytest.raises(OSError, match="no JSON of an access_key and a secret_key"):
        root_credentials(Settings(data=tmp_path))


def test_i97_credentials_that_are_no_json_stop_the_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "credentials").touch(mode=0o600)
    (data / "credentials").write_text("not JSON")
    ended = serve(data, {})
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("sluice: this file is no JSON")
    assert last.endswith(str(data / "credentials"))


def test_i97_files_that_the_operator_names(tmp_path: Path) -> None:
    """Others may read them, as orchestrators mount them, and they may be links; nobody else may write them."""
    for name, text in (("settings.toml", "port = 1\n"), ("key", "no PEM"), ("master", "A" * 43 + "=")):
        (tmp_path / f"..{name}").write_text(text)
        (tmp_path / f"..{name}").chmod(0o444)
        (tmp_path / name).symlink_to(f"..{name}")
    config, key = tmp_path / "settings.toml", tmp_path / "key"
    assert Settings(config=config).port == 1
    config.chmod(0o666)
    with pytest.raises(ConfigError, match=r"settings\.toml: all users can write to this file"):
        Settings(config=config)
    assert read_file(tmp_path / "master") == bytes(32)
    (tmp_path / "master").chmod(0o666)
    with pytest.raises(RingError, match="all users can write to this file"):
        read_file(tmp_path / "master")
    reading, writing = os.pipe()  # as a shell's <(…)
    os.write(writing, b"A" * 43 + b"=")
    os.close(writing)
    assert read_file(Path(f"/dev/fd/{reading}")) == bytes(32)
    os.close(reading)
    key.chmod(0o666)
    ended = CliRunner().invoke(cli, ["serve", "--tls-cert", str(key), "--tls-key", str(key)])
    assert ended.exit_code == 1
    assert "all users can write to this file" in ended.output


@needs_root
def test_i97_root_beside_a_service_of_another_user(tmp_path: Path) -> None:
    data = tmp_path / "data"
    add = ["user", "add", "--data", str(data), "--json"]
    for command in (["migrate", "--data", str(data)], add):
        assert CliRunner().invoke(cli, command).exit_code == 0
    for path in (data, *data.rglob("*")):
        os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
    data.chmod(0o755)
    again = CliRunner().invoke(cli, add)
    assert again.exit_code == 0, again.output
    data.chmod(0o777)  # now anybody can, but what is there is still that user's or root's
    run_dir = Settings(data=data).run_dir
    again = CliRunner().invoke(cli, add)
    assert (again.exit_code, str(run_dir) in again.output) == (1, True)
