"""The environment of a test's S3 endpoint, in which nothing of the developer's own is left."""

from __future__ import annotations

import os
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

from sluice_s3.testing import Endpoint

DEVELOPER = {
    "AWS_ACCESS_KEY_ID": "DEVELOPER",
    "AWS_SECRET_ACCESS_KEY": "developer",
    "AWS_SESSION_TOKEN": "developer",
    "AWS_PROFILE": "company",
    "AWS_ENDPOINT_URL": "https://elsewhere.test",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    "AWS_USE_FIPS_ENDPOINT": "true",
    "HTTP_PROXY": "http://proxy.test:3128",
    "NO_PROXY": "company.test",
}


@pytest.fixture
def endpoint(tmp_path: Path) -> Endpoint:
    return Endpoint("http://127.0.0.1:1234", "TESTKEY", "test-secret", "eu-west-3", tmp_path)


@pytest.fixture
def developer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer with keys, a profile and a home of his own."""
    home = tmp_path / "home" / ".aws"
    home.mkdir(parents=True)
    (home / "credentials").write_text("[default]\naws_access_key_id = DEVELOPER\naws_secret_access_key = developer\n")
    (home / "config").write_text("[profile company]\nregion = us-gov-west-1\n[default]\nregion = us-gov-west-1\n")
    monkeypatch.setenv("HOME", str(home.parent))
    for name, value in DEVELOPER.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("developer")
def test_the_environment_wins_over_the_developers(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in endpoint.env.items():
        monkeypatch.setenv(name, value)
    client = boto3.session.Session().client("s3")
    keys = client._request_signer._credentials
    assert (keys.access_key, keys.secret_key, keys.token or "") == ("TESTKEY", "test-secret", "")
    assert (client.meta.endpoint_url, client.meta.region_name) == ("http://127.0.0.1:1234", "eu-west-3")
    assert os.environ["NO_PROXY"] == "company.test,127.0.0.1,localhost"


@pytest.mark.usefixtures("developer")
def test_a_client_needs_no_environment(endpoint: Endpoint) -> None:
    before = dict(os.environ)
    client = endpoint.client(config=Config(s3={"addressing_style": "path"}))
    assert client._request_signer._credentials.access_key == "TESTKEY"
    assert client.meta.region_name == "eu-west-3"
    assert client.meta.config.retries["total_max_attempts"] == 1
    assert client.meta.config.s3["addressing_style"] == "path"
    assert endpoint.client("sts").meta.endpoint_url == "http://127.0.0.1:1234"
    assert dict(os.environ) == before
