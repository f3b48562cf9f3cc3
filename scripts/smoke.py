"""Start `sluice serve` on an empty directory, PUT and GET one object, restart, GET again; then a server for tests.

Requests are signed. It needs the standard library only, so that it proves that a plain install is complete.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import http.client
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

BODY = os.urandom(100_000)


def start(sluice: str, data: Path) -> tuple[subprocess.Popen[str], str]:
    """Start the gateway on a free port and wait for its ready line."""
    command = [sluice, "serve", "--port", "0", "--admin-port", "-1", "--data", str(data), "--workers", "2"]
    gateway = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert gateway.stdout is not None
    for line in gateway.stdout:
        print(line, end="")
        if "ready on " in line:
            return gateway, line.split("ready on ")[1].strip()
    raise SystemExit(f"sluice serve ended with {gateway.wait()} before it was ready")


def request(endpoint: str, keys: dict[str, str], method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """Send one request with signature version 4."""
    host = urlsplit(endpoint).netloc
    time = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    day, digest = time[:8], hashlib.sha256(body).hexdigest()
    headers = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": time}
    signed = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    canonical = f"{method}\n{path}\n\n{lines}\n{signed}\n{digest}"
    scope = f"{day}/us-east-1/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = b"AWS4" + keys["secret_key"].encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys['access_key']}/{scope}, SignedHeaders={signed}, Signature={signature}"
    )
    connection = http.client.HTTPConnection(host, timeout=30)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def expect(what: str, got: tuple[int, bytes], status: int, body: bytes | None = None) -> None:
    """Exit with a message unless the answer is as expected."""
    if got[0] != status or (body is not None and got[1] != body):
        raise SystemExit(f"{what}: {got[0]} {got[1][:500]!r}")
    print(f"{what}: {status}")


def main() -> None:
    """Start the gateway twice on one directory."""
    sluice, data = sys.argv[1], Path(sys.argv[2])
    gateway, endpoint = start(sluice, data)
    try:
        keys = json.loads((data / "credentials").read_text())
        expect("create bucket", request(endpoint, keys, "PUT", "/first"), 200)
        expect("put", request(endpoint, keys, "PUT", "/first/hello", BODY), 200)
        expect("get", request(endpoint, keys, "GET", "/first/hello"), 200, BODY)
    finally:
        gateway.terminate()
        code = gateway.wait(60)
    if code != 0:
        raise SystemExit(f"sluice serve ended with {code} at SIGTERM")
    gateway, endpoint = start(sluice, data)
    try:
        expect("get after a restart", request(endpoint, keys, "GET", "/first/hello"), 200, BODY)
    finally:
        gateway.terminate()
        gateway.wait(60)
    serve_for_tests()


def serve_for_tests() -> None:
    """Fill the disk of a server for tests; pytest finds the plugin by its entry point."""
    from importlib.metadata import entry_points

    from sluice_s3.testing import Server

    if [one.value for one in entry_points(group="pytest11", name="sluice")] != ["sluice_s3.testing.plugin"]:
        raise SystemExit("the plugin of pytest has no entry point")
    with Server() as server:
        keys = {"access_key": server.access_key, "secret_key": server.secret_key}
        expect("create bucket for tests", request(server.endpoint, keys, "PUT", "/first"), 200)
        with server.fault("disk full"):
            expect("put on a full disk", request(server.endpoint, keys, "PUT", "/first/hello", BODY), 507)
        expect("put", request(server.endpoint, keys, "PUT", "/first/hello", BODY), 200)


if __name__ == "__main__":
    main()
