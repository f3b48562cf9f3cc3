"""The systemd units, and what a gateway does with what systemd hands it: sockets and a channel for notifications."""

from __future__ import annotations

import configparser
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_s3.app.settings.environment import find_unknown
from tests.support.environment import ROOT
from tests.support.gateway import Gateway, client

UNITS = ROOT / "deploy" / "systemd"
HAND_OVER = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
admin = socket.create_server(("127.0.0.1", 0))
os.dup2(os.dup(listener.fileno()), 10), os.dup2(os.dup(admin.fileno()), 11)
os.dup2(10, 3), os.dup2(11, 4)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="2", LISTEN_FDNAMES="sluice.socket:admin")
os.execv(sys.executable, [sys.executable, "-m", "sluice_s3.app.cli", *sys.argv[1:]])
"""
"""What systemd does before it runs a service with a socket."""


def _unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNITS / name)
    return parser


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:  # as in containers, of CI too
        pytest.skip("not installed: systemd-analyze")
    text = (UNITS / "sluice.service").read_text()
    (tmp_path / "sluice.service").write_text(text.replace("/opt/sluice/bin/sluice", shutil.which("true") or ""))
    shutil.copy(UNITS / "sluice.socket", tmp_path)
    units = [tmp_path / "sluice.service", tmp_path / "sluice.socket"]
    checked = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "sluice" not in checked.stderr, checked.stderr


def test_the_units_say_what_the_gateway_does() -> None:
    service, socket_unit = _unit("sluice.service")["Service"], _unit("sluice.socket")["Socket"]
    assert service["Type"] == "notify"
    assert "-HUP" in service["ExecReload"]
    assert service["ExecStart"].split()[1:] == ["serve"]
    assert socket_unit["FileDescriptorName"] == "s3"
    given = [line.lstrip("#").partition("=") for line in (UNITS / "sluice.env").read_text().splitlines() if "=" in line]
    name, _, value = service["Environment"].partition("=")
    assert find_unknown({name: value, **{key: text for key, _, text in given}}) is None


def test_a_gateway_serves_on_sockets_of_systemd_and_says_when_it_is_ready(tmp_path: Path) -> None:
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with channel:
        channel.bind(str(tmp_path / "notify"))
        channel.settimeout(60)
        gateway = Gateway(
            tmp_path / "data",
            options=("--admin-port", "-1"),
            env={"NOTIFY_SOCKET": str(tmp_path / "notify")},
            command=(sys.executable, "-c", HAND_OVER),
            port=1,  # a port that it could not bind as a user, and does not try to
        )
        with gateway:
            assert channel.recv(100) == b"READY=1"
            assert gateway.admin.startswith("http://127.0.0.1:")
            s3 = client(gateway.endpoint)
            s3.create_bucket(Bucket="first")
            gateway.hup()  # the next processes get the same socket
            for number in range(20):
                s3.put_object(Bucket="first", Key=f"k{number}", Body=b"x")
            assert s3.list_objects_v2(Bucket="first")["KeyCount"] == 20
            gateway.stop()
            assert channel.recv(100) == b"STOPPING=1"
