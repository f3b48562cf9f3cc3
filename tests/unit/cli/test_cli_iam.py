"""`sluice iam`: users, groups, roles and keys from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sluice_s3.app.access.account import account_number
from sluice_s3.app.cli.main import cli

TEXT = '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    assert CliRunner().invoke(cli, ["migrate", "--data", str(tmp_path)]).exit_code == 0
    made = CliRunner().invoke(cli, ["user", "add", "--id", "ours", "--access-key", "OURKEY", "--data", str(tmp_path)])
    assert made.exit_code == 0, made.output
    return tmp_path


def run(data: Path, *arguments: str, code: int = 0) -> Any:
    done = CliRunner().invoke(cli, ["iam", *arguments, "--data", str(data)])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout) if code == 0 else done.output


@pytest.mark.parametrize("account", ["ours", "OURKEY", account_number("ours")])
def test_an_account_is_named_in_three_ways(data: Path, account: str) -> None:
    assert run(data, account, "CreateUser", "UserName=ann")["User"]["UserName"] == "ann"


def test_a_user_with_a_key_and_a_policy(data: Path, tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text(TEXT)
    run(data, "ours", "CreateUser", "UserName=ann")
    run(data, "ours", "PutUserPolicy", "UserName=ann", "PolicyName=p", f"PolicyDocument=@{tmp_path / 'policy.json'}")
    assert run(data, "ours", "GetUserPolicy", "UserName=ann", "PolicyName=p")["PolicyDocument"] == TEXT
    key = run(data, "ours", "CreateAccessKey", "UserName=ann")["AccessKey"]
    assert len(key["SecretAccessKey"]) >= 40
    shown = CliRunner().invoke(cli, ["user", "list", "--json", "--data", str(data)])
    assert json.loads(shown.stdout)[0]["access_keys"] == ["OURKEY"], "a user's key is not the account's"


def test_what_is_refused(data: Path) -> None:
    assert "NoSuchEntity" in run(data, "ours", "GetUser", "UserName=ann", code=1)
    assert "NotImplemented" in run(data, "ours", "Nothing", code=1)
    assert "no such account" in run(data, "nobody", "ListUsers", code=3)
    assert "NAME=VALUE" in run(data, "ours", "GetUser", "ann", code=2)
    run(data, "ours", "GetUser", "UserName=@/nowhere", code=1)
