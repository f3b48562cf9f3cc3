"""Whose requests a load test makes, where buckets stand in them, and what it removes."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials

from sluice_s3.loadtests.clients import credentials
from sluice_s3.loadtests.clients.credentials import Credentials, NoCredentials, find_credentials
from sluice_s3.loadtests.clients.endpoint import Endpoint
from sluice_s3.loadtests.clients.s3 import S3Client
from sluice_s3.loadtests.clients.signing import UNSIGNED, Signer
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway
from tests.tools.loadtests.answering import OK, answering, saying

KEYS = ("access", "secret-key")
CONFIG = """
[profile temporary]
aws_access_key_id = AKIDOFPROFILE
aws_secret_access_key = secret-of-profile
aws_session_token = token-of-profile
"""


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment in which botocore finds no keys; returns the file of profiles."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    return tmp_path / "config"


def test_a_session_token_is_signed_as_botocore_does() -> None:
    signer = Signer("h:9000", "", "", source=lambda: Credentials(*KEYS, "to/ken+=="))
    head = signer.head("PUT", "/b/k", "", 3, now=1_700_000_000.0).decode()
    lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
    request = AWSRequest(method="PUT", url="http://h:9000/b/k")
    request.context["timestamp"] = lines["x-amz-date"]
    oracle = SigV4Auth(BotoCredentials(*KEYS, "to/ken+=="), "s3", "us-east-1")
    names = "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
    canonical = (
        f"PUT\n/b/k\n\nhost:h:9000\nx-amz-content-sha256:{UNSIGNED}\nx-amz-date:{lines['x-amz-date']}\n"
        f"x-amz-security-token:to/ken+==\n\n{names}\n{UNSIGNED}"
    )
    signature = oracle.signature(oracle.string_to_sign(request, canonical), request)
    assert lines["x-amz-security-token"] == "to/ken+=="
    assert f"SignedHeaders={names}, Signature={signature}" in lines["Authorization"]


def test_keys_that_were_renewed_are_used_within_a_second() -> None:
    current = [Credentials("old", "secret")]
    signer = Signer("h", "", "", source=lambda: current[0])
    assert b"Credential=old/" in signer.head("GET", "/", now=1_700_000_000.0)
    current[0] = Credentials("new", "secret", "token")
    assert b"Credential=old/" in signer.head("GET", "/", now=1_700_000_000.5)
    assert b"Credential=new/" in signer.head("GET", "/", now=1_700_000_001.0)


def test_keys_that_are_given_come_before_those_that_are_found(nobody: Path) -> None:
    assert find_credentials(*KEYS, "t")() == Credentials(*KEYS, "t")
    nobody.write_text(CONFIG)
    found = find_credentials(*KEYS, "t", profile="temporary")()
    assert found == Credentials("AKIDOFPROFILE", "secret-of-profile", "token-of-profile")


def test_the_profile_of_the_environment_is_found(nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody.write_text(CONFIG)
    monkeypatch.setenv("AWS_PROFILE", "temporary")
    assert find_credentials("", "")().access_key == "AKIDOFPROFILE"


def test_no_keys_is_a_clear_line(nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoCredentials, match=r"no keys: give --access-key and --secret-key, set AWS_ACCESS_KEY_ID"):
        find_credentials("", "")
    with pytest.raises(NoCredentials, match=r"the secret key is missing"):
        find_credentials("only-one", "")
    with pytest.raises(NoCredentials, match=r"nowhere"):
        find_credentials("", "", profile="nowhere")
    monkeypatch.setattr(credentials, "find_spec", lambda _: None)
    with pytest.raises(NoCredentials, match=r"pip install botocore"):
        find_credentials("", "")


@pytest.mark.parametrize(
    ("url", "addressing", "bucket", "host"),
    [
        ("https://s3.eu-central-1.amazonaws.com", "auto", "b", "b.s3.eu-central-1.amazonaws.com"),
        ("https://s3.cn-north-1.amazonaws.com.cn", "auto", "b", "b.s3.cn-north-1.amazonaws.com.cn"),
        ("https://s3.amazonaws.com", "auto", "with.dots", None),
        ("http://s3.amazonaws.com", "auto", "with.dots", "with.dots.s3.amazonaws.com"),
        ("https://s3.amazonaws.com", "path", "b", None),
        ("http://127.0.0.1:9000", "auto", "b", None),
        ("http://amazonaws.com.example.org", "auto", "b", None),
        ("http://s3.example.org:9000", "virtual", "b", "b.s3.example.org:9000"),
    ],
)
def test_where_a_bucket_stands(url: str, addressing: str, bucket: str, host: str | None) -> None:
    found = Endpoint(url, *KEYS, addressing=addressing).of_bucket(bucket)
    assert (found and found.url.partition("//")[2]) == host


def test_a_bucket_in_the_host_name(monkeypatch: pytest.MonkeyPatch) -> None:
    connect, hosts = socket.create_connection, []

    def connect_here(address: tuple[str, int], **more: Any) -> socket.socket:
        hosts.append(address[0])
        return connect(("127.0.0.1", address[1]), **more)

    listing = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n<ListBucketResult></L")
    with answering(OK, OK, listing) as (url, seen):
        monkeypatch.setattr(socket, "create_connection", connect_here)
        port = url.rpartition(":")[2]
        client = S3Client(Endpoint(f"http://s3.test:{port}", *KEYS, addressing="virtual"), "bucket", "r/")
        assert [client.put("a b", 1).error, client.stat("x").error, client.list("", "", 5).error] == ["", "", ""]
        client.close()
    assert set(hosts) == {"bucket.s3.test"}
    assert [head.split(b" HTTP")[0] for head in seen] == [
        b"PUT /r/a%20b", b"HEAD /r/x", b"GET /?list-type=2&max-keys=5&prefix=r%2F",
    ]  # fmt: skip
    assert all(b"\r\nHost: bucket.s3.test:%s\r\n" % port.encode() in head for head in seen)


def test_a_bucket_elsewhere_than_in_the_first_region_names_it() -> None:
    missing = saying(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
    body = b"<Error><Code>IllegalLocationConstraintException</Code></Error>"
    refused = saying(b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    with answering(missing, missing, refused, OK, OK) as (url, seen):
        client = S3Client(Endpoint(url, *KEYS, "eu-west-1"), "bucket")
        assert client.prepare() == ""
        client.close()
    assert [head.split(b" HTTP")[0] for head in seen[2:]] == [
        b"PUT /bucket", b"PUT /bucket", b"PUT /bucket/.sluice-bench",
    ]  # fmt: skip
    assert b"<LocationConstraint>eu-west-1</LocationConstraint>" in seen[3]


def test_below_a_prefix_only_what_the_test_made_is_removed(tmp_path: Path) -> None:
    with Gateway(tmp_path / "data", workers=1) as gateway:
        endpoint = Endpoint(gateway.endpoint, ACCESS_KEY, SECRET_KEY)
        theirs, own = S3Client(endpoint, "theirs"), S3Client(endpoint, "theirs", "p/sluice-bench-1/")
        missing = S3Client(endpoint, "missing", "p/x/")
        theirs._wire.ask("PUT", "/theirs")
        foreign = sorted(
            ["a", "p/x", "p/sluice-bench-", "p/sluice-bench-1", "p/sluice-bench-10/x", "p/sluice-bench-2/x"]
        )
        assert [theirs.put(key, 5).error for key in foreign] == [""] * len(foreign)
        assert own.prepare() == ""
        assert [own.put(f"mix-0/{number}", 5).error for number in range(20)] == [""] * 20
        assert own.list("mix-0/", "mix-0/1", 3).error == ""
        assert own.get("mix-0/7", 5).error == ""
        assert own.sweep() == ""
        assert [key for page in theirs._pages("") for key in page] == foreign
        assert theirs.sweep().startswith("theirs is there already and was not made by a load test")
        assert missing.prepare().startswith("there is no bucket missing")
        assert [theirs.get(key, 5).error for key in foreign] == [""] * len(foreign)
        for client in (theirs, own, missing):
            client.close()


@pytest.mark.parametrize("key", [b"a", b"p/other", b"p/sluice-bench-1"])
def test_an_endpoint_that_lists_more_than_the_prefix_loses_nothing(key: bytes) -> None:
    body = b"<Key>p/sluice-bench-1/x</Key><Key>%s</Key>" % key
    listing = saying(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    with answering(listing, OK, OK, OK) as (url, seen):
        client = S3Client(Endpoint(url, *KEYS), "bucket", "p/sluice-bench-1/")
        assert "which is not the test's" in client.sweep()
        client.close()
    assert [head.split(b" ")[0] for head in seen] == [b"GET"]


def test_without_a_root_nothing_below_a_prefix_is_removed() -> None:
    listing = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n<Key>a</Key>")
    with answering(listing, OK) as (url, seen):
        client = S3Client(Endpoint(url, *KEYS), "bucket", "")
        assert client.sweep()
        client.close()
    assert len(seen) == 1
