"""The command line itself: help, version, and variables that are no settings."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sluice_s3.app import __version__
from sluice_s3.app.cli.main import cli
from sluice_s3.app.settings.environment import find_unknown, setting_variables
from tests.support.settings import make_settings
from tests.unit.store.site import prepare


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_other_systems_are_refused_plainly(system: str) -> None:
    code = f"import sys; sys.platform = {system!r}; import sluice_s3.app.cli.main"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "runs on Linux only" in ended.stderr


def test_version() -> None:
    for words in (["--version"], ["version"]):
        result = CliRunner().invoke(cli, words)
        assert (result.exit_code, result.stdout) == (0, f"{__version__}\n")


def test_help_shows_serve_first_and_keeps_brackets() -> None:
    commands = CliRunner().invoke(cli, ["--help"]).stdout.partition("Commands:\n")[2]
    assert commands.split()[0] == "serve"
    assert "[env SLUICE_DATA]" in CliRunner().invoke(cli, ["serve", "--help"]).stdout
    assert "NAME=PATH[:DRIVER]" in CliRunner().invoke(cli, ["bench", "--help"]).stdout


def test_an_unknown_variable_is_refused_with_the_one_that_was_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_WORKER", "2")
    result = CliRunner().invoke(cli, ["serve"])
    assert result.exit_code == 2
    assert result.stderr == "sluice: SLUICE_WORKER: there is no such setting (did you mean SLUICE_WORKERS?)\n"


def test_variables_of_others_are_left_alone() -> None:
    assert {"SLUICE_DATA", "SLUICE_INDEX_URL", "MINIO_ROOT_USER", "MINIO_ROOT_USER_FILE"} <= setting_variables()
    of_others = [
        "PATH",
        "SLUICE_USER_SECRET_KEY",
        "SLUICE_TEST_INDEX",
        "SLUICE_SERVICE_HOST",
        "SLUICE_ADMIN_SERVICE_PORT_HTTP",
        "SLUICE_S3_PORT",
        "SLUICE_HEADLESS_PORT_9000_TCP",
        "SLUICE_PORT_9000_TCP_ADDR",
    ]
    assert find_unknown(dict.fromkeys([*of_others, *setting_variables()], "1")) is None
    assert find_unknown({"SLUICE_OLD": ""}) is None
    assert find_unknown({"SLUICE_ZZZZZZ": "1"}) == "SLUICE_ZZZZZZ: there is no such setting"


@pytest.mark.parametrize(
    "command",
    [
        ["user", "list"],
        ["user", "add"],
        ["key", "list"],
        ["iam", "ours", "ListUsers"],
        ["bucket", "list"],
        ["bucket", "create", "new"],
        ["bucket", "remove", "new"],
        ["bucket", "quota", "new"],
        ["fsck"],
        ["scrub"],
    ],
)
def test_a_command_in_a_wrong_directory_says_so_and_makes_nothing(tmp_path: Path, command: list[str]) -> None:
    result = CliRunner().invoke(cli, [*command, "--data", str(tmp_path / "wrong")])
    assert result.exit_code == 1
    assert f"there is no index at {tmp_path}/wrong/index/sluice.db" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_command_where_the_index_is_lost_names_the_cure(tmp_path: Path) -> None:
    (tmp_path / "store.json").touch()
    result = CliRunner().invoke(cli, ["bucket", "list", "--data", str(tmp_path)])
    assert (result.exit_code, "`sluice rebuild`" in result.stderr, "`sluice serve`" in result.stderr) == (
        1,
        True,
        False,
    )


def test_config_check_shows_what_is_given_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "sluice.toml"
    file.write_text(
        'region = "eu-1"\n[stores.far]\nurl = "sftp://me:hush@host/x"\ndriver = "fsspec"\n'
        'options = {password = "hush"}\n'
    )
    file.chmod(0o600)
    monkeypatch.setenv("SLUICE_ROOT_ACCESS_KEY", "ROOT")
    monkeypatch.setenv("SLUICE_ROOT_SECRET_KEY", "hush-hush")
    index = f"sqlite:///{tmp_path}/index.db"
    result = CliRunner().invoke(cli, ["config", "check", "--config", str(file), "--index", index, "--json"])
    assert result.exit_code == 0, result.output
    assert "hush" not in result.output
    found = json.loads(result.stdout)
    assert found["region"] == {"value": "eu-1", "from": "the file"}
    assert found["root_access_key"] == {"value": "ROOT", "from": "SLUICE_ROOT_ACCESS_KEY"}
    assert found["index"]["from"] == "--index"
    assert found["stores"]["value"]["far"]["options"] == {"password": "**********"}
    assert set(found) == {"region", "stores", "index", "config", "root_access_key", "root_secret_key"}
    file.write_text('regoin = "eu-1"\n')
    refused = CliRunner().invoke(cli, ["config", "check", "--config", str(file)])
    assert (refused.exit_code, "regoin" in refused.stderr) == (2, True)


def test_postgres_without_its_package_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "asyncpg" else real(name))
    url = "postgresql://user@127.0.0.1:1/index"
    for command in (["user", "list", "--index", url], ["serve", "--index", url], ["index", "copy", url, url]):
        result = CliRunner().invoke(cli, command)
        assert (result.exit_code, "pip install 'sluice-s3[postgres]'" in result.stderr) == (2, True)


def test_traces_without_their_package_are_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def find(name: str) -> object:
        if name.startswith("opentelemetry.exporter"):
            raise ModuleNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    monkeypatch.setenv("SLUICE_TRACES", "true")
    result = CliRunner().invoke(cli, ["serve", "--data", str(tmp_path)])
    assert (result.exit_code, "pip install 'sluice-s3[otel]'" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bucket/key"], "is not s3://BUCKET/KEY"),
        (["s3://bucket"], "is not s3://BUCKET/KEY"),
        (["s3://b/k", "--expires", "8d"], "1 second to 7 days"),
        (["s3://b/k", "--expires", "0"], "1 second to 7 days"),
        (["s3://b/k", "--expires", "soon"], "1 second to 7 days"),
        (["s3://b/k", "--upload", "--version-id", "v"], "cannot be written"),
    ],
)
def test_what_cannot_be_shared(words: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["share", *words])
    assert (result.exit_code, message in result.stderr) == (2, True)


def test_audit_prints_what_commands_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = make_settings(tmp_path)
    prepare(settings)
    data = ["--data", str(settings.data)]
    monkeypatch.setattr(sys, "argv", ["sluice", "user", "add", "secret"])
    for name in ("ann", "bob"):
        assert CliRunner().invoke(cli, ["user", "add", "--display-name", name, *data]).exit_code == 0
    result = CliRunner().invoke(cli, ["audit", "--action", "user*", "--limit", "5", *data])
    assert result.exit_code == 0, result.output
    newest, older = map(json.loads, result.stdout.splitlines())
    assert (newest["source"], newest["action"], newest["after"]["name"]) == ("command", "user add", "bob")
    assert newest["principal"].startswith("command:")
    assert older["after"]["name"] == "ann"
    assert CliRunner().invoke(cli, ["audit", "--outcome", "!Success", *data]).stdout == ""
