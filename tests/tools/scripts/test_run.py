"""`make run` says where the gateway and its console are, and how to make a first request."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from scripts import run

CONSOLE = "  console     http://localhost:9001\n"


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "SLUICE_ROOT_ACCESS_KEY",
        "MINIO_ROOT_USER",
        "SLUICE_CONSOLE",
        "SLUICE_CONSOLE_URL",
        "SLUICE_TLS_CERT",
    ):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "credentials").write_text(json.dumps({"access_key": "ACCESS", "secret_key": "SECRET"}))
    return tmp_path


@pytest.mark.parametrize("aws", [None, "/usr/bin/aws"])
def test_the_welcome(data: Path, monkeypatch: pytest.MonkeyPatch, aws: str | None) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: aws)
    text = run.welcome("http://127.0.0.1:9000", run.console_address(9001), data)
    assert CONSOLE in text
    assert "AWS_SECRET_ACCESS_KEY=SECRET" in text
    assert ("pip install awscli" in text) == (aws is None)
    assert ("aws --endpoint-url" in text) == (aws is not None)


def test_where_there_is_no_console(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run.console_address(-1) == ""
    monkeypatch.setenv("SLUICE_CONSOLE", "false")
    assert run.console_address(9001) == ""
    assert "console" not in run.welcome("http://127.0.0.1:9000", "", data)


def test_a_console_with_an_address_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_TLS_CERT", "cert.pem")
    assert run.console_address(9001) == "https://localhost:9001"
    monkeypatch.setenv("SLUICE_CONSOLE_URL", "https://console.example.com")
    assert run.console_address(9001) == "https://console.example.com"
