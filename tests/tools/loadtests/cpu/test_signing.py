"""The signer against botocore's."""

from __future__ import annotations

import datetime
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from sluice_s3.loadtests.clients.signing import UNSIGNED, Field, Signer

NOW = 1_750_000_000


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("GET", "/bucket/4096-16/a/0000001", ""),
        ("PUT", "/bucket/key", "partNumber=7&uploadId=abc-_.123"),
        ("GET", "/bucket", "list-type=2&max-keys=1000&start-after=a%2Fb"),
        ("POST", "/bucket/key", "uploads="),
    ],
)
def test_as_botocore_signs(monkeypatch: pytest.MonkeyPatch, method: str, path: str, query: str) -> None:
    signer = Signer("127.0.0.1:9000", "AKID", "secret")
    head = signer.head(method, path, query, 5, now=NOW).decode()

    request = AWSRequest(method, f"http://127.0.0.1:9000{path}" + (f"?{query}" if query else ""))
    request.headers["X-Amz-Content-SHA256"] = UNSIGNED
    auth = S3SigV4Auth(Credentials("AKID", "secret"), "s3", "us-east-1")
    monkeypatch.setattr(
        "botocore.auth.get_current_datetime",
        lambda remove_tzinfo=True: datetime.datetime.fromtimestamp(NOW, datetime.UTC).replace(tzinfo=None),
    )
    monkeypatch.setattr(auth, "payload", lambda request: UNSIGNED)
    auth.add_auth(request)

    assert re.search(r"Signature=(\w+)", head)[1] == re.search(r"Signature=(\w+)", request.headers["Authorization"])[1]
    assert head.endswith("Content-Length: 5\r\n\r\n")


def test_more_fields_as_botocore_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"x-amz-trailer": "x-amz-checksum-crc32", "content-encoding": "aws-chunked"}
    payload = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    signer = Signer("127.0.0.1:9000", "AKID", "secret")
    own = [Field("Host"), Field("x-amz-content-sha256"), Field("authorization", signed=False), Field("X-Amz-Date")]
    given = [Field(name.title(), value) for name, value in fields.items()]
    sent = [*own, Field("Expect", "100-continue", signed=False), *given]
    signed = signer.sign("PUT", "/bucket/key?uploadId=u&acl&partNumber=1", payload, sent, now=NOW)

    request = AWSRequest("PUT", "http://127.0.0.1:9000/bucket/key?acl=&partNumber=1&uploadId=u")
    for name, value in {**fields, "x-amz-content-sha256": payload}.items():
        request.headers[name] = value
    auth = S3SigV4Auth(Credentials("AKID", "secret"), "s3", "us-east-1")
    monkeypatch.setattr(
        "botocore.auth.get_current_datetime",
        lambda remove_tzinfo=True: datetime.datetime.fromtimestamp(NOW, datetime.UTC).replace(tzinfo=None),
    )
    monkeypatch.setattr(auth, "payload", lambda request: payload)
    auth.add_auth(request)

    assert signed.signature == re.search(r"Signature=(\w+)", request.headers["Authorization"])[1]
    assert request.headers["Authorization"].encode() in signed.head
    names = [line.partition(b":")[0].decode() for line in signed.head.split(b"\r\n")[1:-2]]
    assert names == [field.name for field in sent]
    assert b"\r\nExpect: 100-continue\r\n" in signed.head


def test_another_second_is_another_date() -> None:
    signer = Signer("h", "AKID", "secret")
    first = signer.head("GET", "/b/k", now=NOW)
    assert signer.head("GET", "/b/k", now=NOW) == first
    assert signer.head("GET", "/b/k", now=NOW + 1) != first
    assert b"Content-Length" not in first


def test_threads_share_a_signer() -> None:
    """Signatures of two alternating seconds are the same as those of a signer of one thread."""
    seconds = [NOW, NOW + 1]
    expected = {now: Signer("h", "AKID", "secret").head("GET", "/b/k", now=now) for now in seconds}
    signer = Signer("h", "AKID", "secret")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            heads = list(threads.map(lambda now: (now, signer.head("GET", "/b/k", now=now)), seconds * 5_000))
    finally:
        sys.setswitchinterval(interval)
    assert [now for now, head in heads if head != expected[now]] == []
