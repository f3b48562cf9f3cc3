"""Health on the service host, never on a bucket's."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.identities import service
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway, client
from tests.support.waiting import eventually
from tests.unit.server.test_minio_metrics import token

pytestmark = pytest.mark.place("postgres")


def get(gateway: Gateway, path: str, host: str = "") -> httpx.Response:
    """An unsigned GET."""
    return httpx.get(gateway.endpoint + path, headers={"host": host} if host else {})


MINIO_PATHS = [f"/minio/health/{name}" for name in ("live", "ready", "cluster", "cluster/read")]


@pytest.mark.parametrize("path", ["/-/health/live", "/-/health/ready", *MINIO_PATHS])
def test_up(gateway: Gateway, path: str) -> None:
    answer = get(gateway, path)
    assert (answer.status_code, answer.text) == (200, "up\n")
    head = httpx.head(gateway.endpoint + path)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "3")


@pytest.mark.parametrize("path", ["/-/health/live", "/-/health/ready", "/minio/health/live"])
def test_on_a_bucket_host_it_is_a_key(gateway: Gateway, s3: Any, bucket: str, path: str) -> None:
    s3.put_object(Bucket=bucket, Key=path[1:], Body=b"an object")
    answer = get(gateway, path, f"{bucket}.s3.test")
    assert (answer.status_code, "AccessDenied" in answer.text) == (403, True)
    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": path[1:]})
    assert httpx.get(url).text == "an object"


@pytest.mark.parametrize(
    "path", ["/-/", "/-/health", "/-/health/live/x", "/minio/health/x", "/-/metrics", "/metrics", "/docs"]
)
def test_nothing_else_is_there(gateway: Gateway, path: str) -> None:
    answer = get(gateway, path)
    assert answer.status_code in (400, 404)
    assert answer.text.startswith("<?xml")


def test_a_bucket_named_minio_hides_the_alias(gateway: Gateway, s3: Any) -> None:
    s3.create_bucket(Bucket="minio")
    try:
        assert [get(gateway, path).status_code for path in MINIO_PATHS] == [403] * len(MINIO_PATHS)
    finally:
        s3.delete_bucket(Bucket="minio")
    assert [get(gateway, path).status_code for path in MINIO_PATHS] == [200] * len(MINIO_PATHS)


def test_a_server_that_is_about_to_stop_says_so_and_serves_on(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data", env={"SLUICE_STOP_DELAY": "100", "SLUICE_DEFAULT_BUCKETS": "first"})
    with gateway.start():
        assert gateway.process is not None
        gateway.process.send_signal(signal.SIGTERM)
        seen: list[int] = []

        def stopping() -> bool:
            seen.extend(get(gateway, "/-/health/ready").status_code for _ in range(10))
            return seen[-10:] == [503] * 10  # in a row, each by a connection of its own: no worker says otherwise

        eventually(stopping, "all workers say that they stop", 30)
        assert set(seen) <= {200, 503}
        assert get(gateway, "/-/health/live").status_code == 200
        s3 = client(gateway.endpoint)
        s3.put_object(Bucket="first", Key="k", Body=b"still served")
        assert s3.get_object(Bucket="first", Key="k")["Body"].read() == b"still served"
        assert gateway.stop(20) == 0, "a second signal ends the delay"


PREFLIGHT_HEADERS = {"origin": "https://a.example", "access-control-request-method": "GET"}


def test_requests_without_a_route_of_s3_are_counted_by_name(tmp_path: Path) -> None:
    with Gateway(tmp_path / "data", workers=1, options=("--admin-port", "0")) as gateway:
        iam = service(gateway, "iam")
        iam.create_user(UserName="ann")
        with pytest.raises(ClientError):
            iam.create_user(UserName="ann")
        with pytest.raises(ClientError):
            iam.create_saml_provider(SAMLMetadataDocument="x" * 1000, Name="x")
        service(gateway, "sts").get_caller_identity()
        httpx.options(f"{gateway.endpoint}/none", headers=PREFLIGHT_HEADERS)
        text = httpx.get(f"{gateway.admin}/metrics").text
    counted = {line for line in text.splitlines() if line.startswith("sluice_requests_total")}
    for name, status in (
        ("CreateUser", "2xx"),
        ("CreateUser", "4xx"),
        ("GetCallerIdentity", "2xx"),
        ("Preflight", "4xx"),
        ("Unknown", "5xx"),
    ):
        assert f'sluice_requests_total{{operation="{name}",status="{status}"}} 1' in counted


def test_minios_path_of_metrics(tmp_path: Path) -> None:
    gateway = Gateway(
        tmp_path / "data", workers=1, options=("--admin-port", "0"), env={"SLUICE_ADMIN_TOKEN": "the-token"}
    )
    url = "/minio/v2/metrics/cluster"
    claims = {"exp": int(time.time()) + 60, "iss": "prometheus"}
    with gateway.start():
        gateway.run("user", "add", "--access-key", "OTHERKEY", "--secret-key", SECRET_KEY)
        asked = {
            name: httpx.get(gateway.endpoint + url, headers={"authorization": f"Bearer {token}"})
            for name, token in {
                "admin": "the-token",
                "minio": token({**claims, "sub": ACCESS_KEY}, secret=SECRET_KEY),
                "of nobody": token({**claims, "sub": "nobody"}, secret=SECRET_KEY),
                "of another account": token({**claims, "sub": "OTHERKEY"}, secret=SECRET_KEY),
                "wrong": token({**claims, "sub": ACCESS_KEY}, secret="wrong"),
            }.items()
        }
        assert {name: answer.status_code for name, answer in asked.items()} == {
            "admin": 200,
            "minio": 200,
            "of nobody": 403,
            "of another account": 403,
            "wrong": 403,
        }
        assert asked["minio"].headers["content-type"].startswith("text/plain")
        assert "sluice_requests_total" in asked["minio"].text
        assert "sluice_store_up" in asked["minio"].text
        assert get(gateway, url).status_code == 403
