"""The image's health check: `deploy/healthcheck.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environment import ROOT, need
from tests.support.gateway import Gateway

SCRIPT = ROOT / "deploy" / "healthcheck.py"


def check(**environment: str) -> int:
    return subprocess.run(
        [sys.executable, "-I", "-S", SCRIPT], env={"PATH": os.environ["PATH"], **environment}, timeout=30
    ).returncode


def test_it_finds_the_gateway_as_the_gateway_finds_its_place(tmp_path: Path) -> None:
    config = tmp_path / "sluice.toml"
    gateway = Gateway(tmp_path / "data", workers=1, options=("--host", "0.0.0.0"))
    gateway.start()
    with gateway:
        config.write_text(f"port = {gateway.port}\n")
        assert check(SLUICE_PORT=str(gateway.port), SLUICE_HOST="0.0.0.0") == 0
        assert check(SLUICE_CONFIG=str(config)) == 0
        assert check(SLUICE_CONFIG=str(config), SLUICE_PORT=str(gateway.port), SLUICE_HOST="") == 0
        assert check(SLUICE_CONFIG=str(config), SLUICE_PORT="1") == 1
    assert check(SLUICE_PORT=str(gateway.port)) == 1


def test_with_tls(tmp_path: Path) -> None:
    need("openssl")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
         "-subj", "/CN=s3.example", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    gateway = Gateway(tmp_path / "data", workers=1, options=("--tls-cert", str(cert), "--tls-key", str(key)))
    with gateway.start():
        assert check(SLUICE_PORT=str(gateway.port), SLUICE_TLS_CERT=str(cert)) == 0
        assert check(SLUICE_PORT=str(gateway.port)) == 1


@pytest.mark.parametrize("answer", [b"HTTP/1.1 503 Service Unavailable\r\n\r\ndown\n", b""])
def test_what_is_not_ready_is_unhealthy(answer: bytes) -> None:
    import socket
    import threading

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert check(SLUICE_PORT=str(listener.getsockname()[1])) == 1
        thread.join()
