"""Group I: what an operator must be able to rely on."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import pytest

from sluice_s3.app.access.root_credentials import Credentials, WeakCredentials, root_credentials
from sluice_s3.app.index.iam.rows import AccessKey
from sluice_s3.app.settings import Settings
from tests.integration.negative.checks import Watch, cases
from tests.integration.negative.site import GROUND, SMALL, Site, path_of, put
from tests.integration.negative.test_c_presigned import version_2
from tests.support.environment import PYTHONPATH, ROOT
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway
from tests.support.raw_http import Request
from tests.support.signing import SIGNED_CHUNKS, Key, chunks_of

WEAK = {
    "MinIO's": ("minioadmin", "minioadmin"),
    "admin": ("admin", "admin"),
    "RustFS's": ("rustfsadmin", "rustfsadmin"),
    "MinIO's old": ("minio", "minio123"),
    "AWS's example": ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    "secret is the key": ("somebody", "somebody"),
    "short secret": ("somebody", "short"),
    "empty secret": ("somebody", ""),
    "no secret": ("somebody", None),
    "no key": (None, "long-enough-secret"),
}


def serve(data: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLUICE_", "MINIO_"))}
    return subprocess.run(
        [sys.executable, "-m", "sluice_s3.app.cli", "serve", "--port", "0", "--admin-port", "-1", "--data", str(data)],
        env={**clean, "PYTHONPATH": PYTHONPATH, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("name", **cases(WEAK))
def test_i95_weak_credentials(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("SLUICE_ROOT_ACCESS_KEY", "SLUICE_ROOT_SECRET_KEY"):
        monkeypatch.delenv(variable, raising=False)
    access, secret = WEAK[name]
    given = {"root_access_key": access, "root_secret_key": secret}
    settings = Settings.model_validate({field: value for field, value in given.items() if value is not None})
    with pytest.raises(WeakCredentials) as raised:
        root_credentials(settings)
    assert not secret or secret not in str(raised.value)


@pytest.mark.parametrize("name", ["MinIO's", "short secret", "no secret"])
def test_i95_weak_credentials_do_not_start(tmp_path: Path, name: str) -> None:
    access, secret = WEAK[name]
    names = ("MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD")
    if name != "MinIO's":
        names = ("SLUICE_ROOT_ACCESS_KEY", "SLUICE_ROOT_SECRET_KEY")
    given = dict(zip(names, (access, secret), strict=True))
    ended = serve(tmp_path / "data", {variable: value for variable, value in given.items() if value is not None})
    assert ended.returncode == 1, ended
    assert "key" in ended.stderr or "credentials" in ended.stderr
    assert "ready" not in ended.stdout
    assert "Traceback" not in ended.stderr


def test_i95_generated_keys_are_each_stores_own(tmp_path: Path) -> None:
    keys = []
    environment = {"SLUICE_ROOT_ACCESS_KEY": "", "SLUICE_ROOT_SECRET_KEY": ""}
    for name in ("a", "b"):
        gateway = Gateway(tmp_path / name, workers=1)
        gateway.environment = lambda: {  # type: ignore[method-assign]
            key: value for key, value in {**os.environ, "PYTHONPATH": PYTHONPATH}.items() if key not in environment
        }
        with gateway:
            pass
        path = tmp_path / name / "credentials"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        kept = json.loads(path.read_text())
        assert len(kept["secret_key"]) >= 30
        keys.append((kept["access_key"], kept["secret_key"]))
        assert kept["secret_key"] not in (tmp_path / f"{name}.log").read_text()
    assert keys[0] != keys[1]
    for path in (tmp_path / "a").rglob("*"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


class Logged:
    """A gateway of its own, with everything on that writes something down."""

    def __init__(self, data: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.admin = free.getsockname()[1]
        environment = {"SLUICE_ACCESS_LOG": "true", "SLUICE_SERVER_TIMING": "true", "SLUICE_ADMIN_TOKEN": TOKEN}
        self.gateway = Gateway(data, env=environment, options=("--admin-port", str(self.admin)))
        self.gateway.start()
        process = self.gateway.process
        assert process is not None
        assert process.stdout is not None
        self.process, self.stdout = process, process.stdout
        self.lines: list[str] = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.stdout))
        self.reader.start()
        self.site = Site(self.gateway)
        self.site.watch = Watch(())  # an answer may show its own request what it said

    def metrics(self) -> str:
        with urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=20) as answer:
            text: str = answer.read().decode()
        return text

    def end(self) -> str:
        """Stop it; returns all that it has written."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(40)
        self.reader.join(20)
        return "".join(self.lines) + (self.gateway.data.parent / f"{self.gateway.data.name}.log").read_text()


TOKEN = "admin-token-0123456789-secret"
SESSION = "FwoGZXIvYXdzEEXAMPLETOKEN"


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Logged]:
    """A gateway with the access log and the admin listener on."""
    running = Logged(tmp_path / "data")
    yield running
    running.end()
    running.gateway.stop()


def requests_with_secrets(site: Site) -> list[Request]:
    """Requests good and bad, each with something in it that nobody may read later."""
    key = path_of(GROUND, "k")
    wrong = Key(site.root.access, "wrong-secret-9876543210")
    get = Request("GET", key)
    signed = site.signed(put(GROUND, "k", b"").having(("x-amz-decoded-content-length", "4")), payload=SIGNED_CHUNKS)
    chunks = b"".join(chunk.wire() for chunk in chunks_of(signed, [b"body"])) + b"\r\n"
    return [
        site.sign(Request("PUT", path_of(GROUND))),
        site.sign(put(GROUND, "k")),
        replace(signed.request, body=chunks),
        replace(signed.request, body=chunks.replace(b"body", b"evil")),
        site.sign(get),
        site.presign(get),
        site.presign(get, expires="0"),
        site.presign(get, expires="x"),
        site.presign(Request("GET", path_of(GROUND, "none"))),
        site.presign(get, wrong),
        site.sign(get, wrong),
        site.sign(get, shift=-7200),
        site.sign(get.having(("x-amz-security-token", SESSION))),
        site.presign(get, change={"X-Amz-Security-Token": SESSION}),
        get.having(("x-amz-security-token", SESSION)),
        version_2(site, "GET", key, 2_000_000_000),
        version_2(site, "GET", key, 1),
        get.having(("authorization", "AWS4-HMAC-SHA256 " + SECRET_KEY)),
        get.having(("authorization", "Basic " + SECRET_KEY)),
        site.sign(Request("GET", path_of(GROUND, "k"), "tagging&acl")),
        site.sign(Request("POST", key, "select&select-type=2", body=b"x")),
        site.presign(Request("GET", f"/{GROUND}/%zz")),
        replace(site.presign(get), path="http://evil/"),
        site.sign(put(GROUND, 'line\r\n{"forged": true}\u2028')),
        site.presign(get).having(("content-length", "x"), length=None),
    ]


def test_i96_nothing_secret_is_written_down(logged: Logged) -> None:
    site = logged.site
    forbidden = [SECRET_KEY, "wrong-secret-9876543210", SESSION, TOKEN, "X-Amz-Signature", "x-amz-security-token"]
    forbidden += ["Signature=", "Credential=", "X-Amz-Credential", "AWSAccessKeyId", "chunk-signature", "AWS4-HMAC"]
    ids = []
    for request in requests_with_secrets(site):
        forbidden += re.findall("[0-9a-f]{64}", request.query + str(request.headers) + request.body.decode("latin-1"))
        forbidden += re.findall("&Signature=([^&]+)", request.query)
        ids.append(site.ask(request).headers["x-amz-request-id"])
    metrics = logged.metrics()
    written = logged.end()
    for request_id in ids:
        assert request_id in written, "the access log is not on"
    assert ACCESS_KEY in written
    records = [json.loads(line) for line in logged.lines if not line.startswith("sluice: ")]
    assert not [record for record in records if "forged" in record]
    for text in forbidden:
        assert text.lower() not in written.lower(), text
        assert text.lower() not in metrics.lower(), text


def test_i96_commands_show_no_secret(site: Site) -> None:
    for arguments in (("user", "list"), ("user", "list", "--json"), ("fsck", "--json"), ("fsck",)):
        shown = site.gateway.run(*arguments, check=False)
        for secret in (site.root.secret, site.other.secret):
            assert secret not in shown.stdout + shown.stderr


def test_i96_repr_shows_no_secret() -> None:
    settings = Settings.model_validate({"root_access_key": "key", "root_secret_key": SECRET_KEY, "admin_token": TOKEN})
    shown = [settings, AccessKey("key", SECRET_KEY, "id", "name", False), Credentials("key", SECRET_KEY, False)]
    for thing in shown:
        for text in (repr(thing), str(thing), f"{thing}", repr([thing])):
            assert SECRET_KEY not in text
            assert TOKEN not in text


def test_i98_a_missing_blob(site: Site) -> None:
    bucket = site.fresh()
    body = b"a body whose file is lost" * 10_000
    site.ok(put(bucket, "k", body))
    next(path for path in (site.data / "data").glob("*/*") if path.read_bytes().startswith(body)).unlink()
    site.refused(site.sign(Request("GET", path_of(bucket, "k"))), 503, "ServiceUnavailable")
    assert site.ok(Request("HEAD", path_of(bucket, "k"))).headers["content-length"] == str(len(body))


def test_i98_a_store_that_is_gone(site: Site) -> None:
    store, away = site.data / "data", site.data / "away"
    store.rename(away)
    try:
        for key in ("evil", "keep/small"):
            site.refused(site.sign(put(GROUND, key, bytes(200_000))), 503, "ServiceUnavailable")
        site.refused(site.sign(Request("GET", path_of(GROUND, "keep/large"))), 503, "ServiceUnavailable")
        assert site.ask(Request("GET", "/-/health/ready")).body in (b"up\n", b"down\n")
    finally:
        away.rename(store)
    assert site.get(GROUND, "keep/small") == SMALL


def test_i98_an_index_that_is_locked(site: Site) -> None:
    database = sqlite3.connect(site.data / "index" / "sluice.db", isolation_level=None)
    try:
        database.execute("BEGIN IMMEDIATE")
        for request in (put(GROUND, "evil"), Request("DELETE", path_of(GROUND, "keep/small"))):
            site.refused(site.sign(request), 503, "SlowDown", "ServiceUnavailable")
        assert site.get(GROUND, "keep/small") == SMALL
    finally:
        database.execute("ROLLBACK")
        database.close()


@pytest.mark.parametrize(
    "path", ["/docs", "/redoc", "/openapi.json", "/metrics", "/api/v1/accounts", "/admin", "/static", "/favicon.ico"]
)
def test_i98_nothing_but_s3_and_health_on_this_port(site: Site, path: str) -> None:
    for prefix in ("", "/-", "/-/health"):
        for method in ("GET", "POST"):
            answer = site.ask_anything(Request(method, prefix + path))
            assert answer.status in (400, 403, 404, 405, 501)
            assert b"swagger" not in answer.body.lower()
            assert b"python_info" not in answer.body


@pytest.mark.parametrize(
    "method", ["OPTIONS", "PATCH", "TRACE", "CONNECT", "PROPFIND", "LOCK", "PURGE", "EVIL", "G\xcbT"]
)
def test_i98_methods_that_s3_has_not(site: Site, method: str) -> None:
    for path in ("/", path_of(GROUND), path_of(GROUND, "keep/small")):
        answer = site.ask(Request(method, path))
        assert answer.status in (400, 403, 405)
        answer = site.ask(site.sign(Request(method, path)))
        assert answer.status in (400, 403, 405, 501)


def test_i98_health_says_up_and_no_more(site: Site) -> None:
    for path in ("/-/health/live", "/-/health/ready", "/minio/health/live"):
        answer = site.ask(Request("GET", path))
        assert (answer.status, answer.body) == (200, b"up\n")
        assert answer.headers.get("server", "Sluice") == "Sluice"
