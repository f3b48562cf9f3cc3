"""The console's listener beside S3: TLS for both, cookies that S3 ignores, and answers that the console may read."""

from __future__ import annotations

import io
import ssl
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import httpx

from tests.support.environment import need
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway

SESSION = "/api/v1/session"
KEYS = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}


def make_certificate(directory: Path) -> tuple[Path, Path]:
    need("openssl")
    cert, key = directory / "cert.pem", directory / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


def ended(gateway: Gateway) -> str:
    """Stop the gateway; what it printed and logged."""
    process = gateway.process
    assert process is not None
    process.terminate()
    assert process.stdout is not None
    printed = process.stdout.read()
    process.wait(40)
    gateway._ended(process)
    return printed + (gateway.data.parent / f"{gateway.data.name}.log").read_text()


def test_s3_beside_the_console(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path)
    options = ("--tls-cert", str(cert), "--tls-key", str(key), "--admin-port", "0")
    env = {"SLUICE_ACCESS_LOG": "true", "SLUICE_PROMETHEUS_AUTH": "public"}
    gateway = Gateway(tmp_path / "data", workers=1, options=options, env=env).start()
    s3, admin = (url.replace("127.0.0.1", "localhost") for url in (gateway.endpoint, gateway.admin))
    try:
        with httpx.Client(verify=ssl.create_default_context(cafile=str(cert))) as http:
            assert admin.startswith("https://")
            signed_in = http.post(admin + SESSION, json=KEYS, headers={"origin": admin})
            assert signed_in.headers["set-cookie"].startswith("__Host-Http-sluice-")
            assert signed_in.headers["set-cookie"].endswith("; Secure")
            assert signed_in.json()["endpoint"] == s3
            cookie = "; ".join(f"{name}={value}" for name, value in signed_in.cookies.items())
            headers = {"origin": admin, "x-sluice-csrf": signed_in.json()["csrf"]}
            check_cookies(http, s3, cookie)
            check_answers(http, s3, admin, sign(http, admin, headers))
            check_archive(http, admin, headers)
            browser = http.get(s3, headers={"accept": "text/html"})
            assert (browser.status_code, browser.headers["location"]) == (302, f"{admin}/console/")
            assert "sluice_requests_total" in http.get(s3 + "/minio/v2/metrics/cluster").text
            check_sign_out(http, admin, s3, headers)
    finally:
        printed = ended(gateway)
    secret = cookie.partition("=")[2]
    assert '"operation"' in printed, "requests were logged"
    for hidden in (secret, secret.rpartition(".")[2], SECRET_KEY, headers["x-sluice-csrf"]):
        assert hidden not in printed


def sign(http: httpx.Client, admin: str, headers: dict[str, str], **one: Any) -> str:
    answer = http.post(admin + "/api/v1/signatures", json={"requests": [one]}, headers=headers)
    url: str = answer.json()["urls"][0]
    return url


def check_cookies(http: httpx.Client, s3: str, cookie: str) -> None:
    """A browser sends S3 the cookie of the console, as ports do not part cookies. It is nobody there."""
    with_it = http.get(f"{s3}/some-bucket/key", headers={"cookie": cookie})
    without = http.get(f"{s3}/some-bucket/key")
    assert (with_it.status_code, without.status_code) == (404, 404)
    assert http.get(s3, headers={"cookie": cookie}).status_code == 403
    assert "set-cookie" not in with_it.headers


def check_answers(http: httpx.Client, s3: str, admin: str, url: str) -> None:
    """The console's page may read answers and errors of S3; other pages may not."""
    found = http.get(url, headers={"origin": admin})
    assert found.status_code == 200
    refused = http.get(f"{s3}/some-bucket", headers={"origin": admin})
    assert refused.status_code >= 400
    for answer in (found, refused):
        assert answer.headers["access-control-allow-origin"] == admin
        assert answer.headers["access-control-expose-headers"] == "*"
        assert "access-control-allow-credentials" not in answer.headers
    foreign = http.get(url, headers={"origin": s3})
    assert not [name for name in foreign.headers if name.startswith("access-control")]
    asked = {"origin": admin, "access-control-request-method": "PUT", "access-control-request-headers": "x-amz-acl"}
    assert http.options(f"{s3}/no-bucket/key", headers=asked).headers["access-control-allow-headers"] == "x-amz-acl"
    assert http.options(f"{s3}/no-bucket/key", headers=asked | {"origin": s3}).status_code == 403


def check_archive(http: httpx.Client, admin: str, headers: dict[str, str]) -> None:
    """The admin process reads from the S3 listener too, under the listener's own certificate."""
    place = {"method": "PUT", "bucket": "some-bucket"}
    assert http.put(sign(http, admin, headers, **place)).status_code == 200
    assert http.put(sign(http, admin, headers, **place, key="a.txt"), content=b"one").status_code == 200
    ask = {"bucket": "some-bucket", "prefixes": [""]}
    made = http.post(f"{admin}/api/v1/archives", json=ask, headers=headers).json()
    with zipfile.ZipFile(io.BytesIO(http.get(admin + made["path"]).content)) as archive:
        assert archive.read("a.txt") == b"one"
    preview = http.get(f"{admin}/api/v1/previews/parquet", params={"bucket": "some-bucket", "key": "a.txt"})
    assert "no Parquet file" in preview.json()["detail"]


def check_sign_out(http: httpx.Client, admin: str, s3: str, headers: dict[str, str]) -> None:
    """What the session signed ends with it, in the workers too."""
    url = sign(http, admin, headers)
    assert http.get(url).status_code == 200
    assert http.delete(admin + SESSION, headers=headers).status_code == 204
    refused = http.get(url)
    assert refused.status_code == 403
    assert "InvalidAccessKeyId" in refused.text
