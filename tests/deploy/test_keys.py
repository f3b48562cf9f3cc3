"""The keys of the compose stack: `deploy/keys.py`."""

from __future__ import annotations

import errno
import importlib.util
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sluice_s3.app.encryption.master_key import read_file, read_master
from sluice_s3.app.settings import Settings
from tests.support.environment import ROOT

SCRIPT = ROOT / "deploy" / "keys.py"
VOLUMES = ("secrets", "postgres-secret", "grafana-secret")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    for name in VOLUMES:
        (tmp_path / name).mkdir()

    def call(*arguments: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", "-S", SCRIPT, *arguments],
            env={"KEYS_ROOT": str(tmp_path), "PATH": os.environ["PATH"], **environment},
            check=check,
            capture_output=True,
            text=True,
        )

    return call


def keys(tmp_path: Path, name: str) -> tuple[str | None, str, str]:
    """Access key, secret and admin token that a gateway reads from a file of settings."""
    settings = Settings(config=tmp_path / "secrets" / name)
    assert settings.root_secret_key is not None
    assert settings.admin_token is not None
    return (
        settings.root_access_key,
        settings.root_secret_key.get_secret_value(),
        settings.admin_token.get_secret_value(),
    )


def contents(tmp_path: Path) -> dict[str, str]:
    return {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}


def test_they_are_made_once_and_told_only_to_who_asks(run: Run, tmp_path: Path) -> None:
    made = run("make")
    assert (made.stdout, made.stderr) == ("", "")
    first = contents(tmp_path)
    assert sorted(first) == [
        "grafana-secret/password",
        "postgres-secret/password",
        "secrets/cluster.toml",
        "secrets/master-key",
        "secrets/single.toml",
    ]
    run("make")
    assert contents(tmp_path) == first
    access_key, secret_key, _ = keys(tmp_path, "single.toml")
    assert len(secret_key) >= 40
    assert keys(tmp_path, "cluster.toml") == keys(tmp_path, "single.toml")
    shown = run("show").stdout
    assert f"export AWS_ACCESS_KEY_ID={access_key}\n" in shown
    evaluated = subprocess.run(
        ["sh", "-c", f'{shown}\nprintf %s "$AWS_SECRET_ACCESS_KEY"'], capture_output=True, text=True, check=True
    )
    assert evaluated.stdout == secret_key


def test_the_index_of_the_cluster(run: Run, tmp_path: Path) -> None:
    run("make")
    password = (tmp_path / "postgres-secret" / "password").read_text()
    assert len(password) >= 40
    settings = Settings(config=tmp_path / "secrets" / "cluster.toml")
    assert settings.index is not None
    assert settings.index.get_secret_value() == f"postgresql://sluice:{password}@postgres:5432/sluice"
    assert settings.index_url is not None
    assert Settings(config=tmp_path / "secrets" / "single.toml").index is None


def test_the_master_key_is_made_once_for_all_gateways(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "secrets" / "master-key"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: run("show"), range(4)))
        found = read_master(Settings(config=tmp_path / "secrets" / "cluster.toml", master_key_file=path))
    run("make", SLUICE_ROOT_ACCESS_KEY="mine", SLUICE_ROOT_SECRET_KEY="something-else")
    assert read_file(path) == found
    assert not list(path.parent.glob("master-key?*"))
    assert path.read_text().strip() not in run("show").stdout


def test_who_may_read_them(run: Run, tmp_path: Path) -> None:
    run("make")
    modes = {name: stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in contents(tmp_path)}
    assert modes == {
        "grafana-secret/password": 0o444,  # by the user of another image, who alone has the volume
        "postgres-secret/password": 0o444,
        "secrets/cluster.toml": 0o400,
        "secrets/master-key": 0o400,
        "secrets/single.toml": 0o400,
    }


def test_keys_that_are_given(run: Run, tmp_path: Path) -> None:
    run("make")
    token = keys(tmp_path, "single.toml")[2]
    run("make", SLUICE_ROOT_ACCESS_KEY="mine", SLUICE_ROOT_SECRET_KEY='a "secret" $of my\\ own')
    assert keys(tmp_path, "single.toml") == ("mine", 'a "secret" $of my\\ own', token)
    assert keys(tmp_path, "cluster.toml") == ("mine", 'a "secret" $of my\\ own', token)
    run("make")
    assert keys(tmp_path, "single.toml")[0] == "mine", "they stay when they are given no more"


@pytest.mark.parametrize("name", ["SLUICE_ROOT_ACCESS_KEY", "SLUICE_ROOT_SECRET_KEY"])
def test_half_of_them_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    ended = run("make", check=False, **{name: "something"})
    assert ended.returncode == 1
    assert "give both" in ended.stderr


def test_a_program_gets_them(run: Run, tmp_path: Path) -> None:
    run("make")
    said = run(
        "run", sys.executable, "-c", "import os; print(os.environ['AWS_ACCESS_KEY_ID'], os.environ['AWS_REGION'])"
    )
    assert said.stdout.split() == [keys(tmp_path, "single.toml")[0], "us-east-1"]


def test_a_volume_that_root_made_is_named_with_its_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("keys", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    def refuse() -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "password.new"))

    monkeypatch.setattr(script, "make", refuse)
    for command in ("make", "show"):
        with pytest.raises(SystemExit, match=rf"cannot write to {tmp_path}, which belongs to user \d+: .*chown keys"):
            script.main([command])


def test_anything_else_is_explained(run: Run) -> None:
    ended = run("forget", check=False)
    assert ended.returncode == 1
    assert "keys.py show" in ended.stderr
