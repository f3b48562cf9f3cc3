"""Damaged data over HTTP: 503 before the first byte, a cut connection in the middle, never a wrong byte."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import Gateway, client
from tests.support.raw_http import Client, ConnectionEnded, make_request

BUCKET = "damaged"
MIB = 1 << 20
BODY = os.urandom(6 * MIB)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    made = Gateway(tmp_path / "data", workers=1, env={"SLUICE_DURABILITY": "relaxed"})
    with made:
        client(made.endpoint).create_bucket(Bucket=BUCKET)
        yield made


def stored(gateway: Gateway, suffix: str) -> Path:
    (found,) = [path for path in (gateway.data / "data").glob("*/*") if path.suffix == suffix]
    return found


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 16]))


def get(s3: Any, gateway: Gateway, key: str, headers: dict[str, str] | None = None) -> tuple[int, int, bytes, bool]:
    """Status, promised length, what came, and whether it came whole, of a GET that nothing retries."""
    url = s3.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": key})
    with Client(url) as asking:
        asking.begin(make_request("GET", url, *(headers or {}).items()))
        head = asking.connection.head()
        promised = int(head.headers["content-length"])
        try:
            return head.status, promised, asking.connection.take(promised), True
        except ConnectionEnded as error:
            return head.status, promised, error.partial, False


@pytest.mark.parametrize("read_before", [False, True])
def test_a_damaged_file(gateway: Gateway, read_before: bool) -> None:
    s3 = client(gateway.endpoint)
    s3.put_object(Bucket=BUCKET, Key="large", Body=BODY)
    if read_before:
        assert get(s3, gateway, "large") == (200, len(BODY), BODY, True)
    path = stored(gateway, "")
    flip(path, 4 * MIB + 100)
    status, promised, body, whole = get(s3, gateway, "large")
    assert (status, promised, whole) == (200, len(BODY), False), "the head was sent before the damage was found"
    assert BODY.startswith(body)
    assert len(body) <= 4 * MIB
    assert get(s3, gateway, "large", {"range": "bytes=0-99"})[2] == BODY[:100]
    assert get(s3, gateway, "large", {"range": f"bytes={4 * MIB}-"})[0] == 503
    flip(path, 4 * MIB + 100)
    assert get(s3, gateway, "large") == (200, len(BODY), BODY, True)
    flip(path, 5)
    assert get(s3, gateway, "large")[0] == 503
    assert s3.head_object(Bucket=BUCKET, Key="large")["ContentLength"] == len(BODY)
    assert "integrity alarm" in (gateway.data.parent / f"{gateway.data.name}.log").read_text()


def test_a_damaged_record(gateway: Gateway) -> None:
    s3 = client(gateway.endpoint)
    body = BODY[:5000]
    s3.put_object(Bucket=BUCKET, Key="small", Body=body)
    s3.put_object(Bucket=BUCKET, Key="other", Body=b"other")
    assert get(s3, gateway, "small")[2] == body
    path = stored(gateway, ".pack")
    content = path.read_bytes()
    at = content.index(body)
    for place in (at - 40, at - 100, at, at + 4999):  # claim, header, first and last byte
        flip(path, place)
        assert get(s3, gateway, "small")[0] == 503
        flip(path, place)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes(5000))
    assert get(s3, gateway, "small")[0] == 503
    assert get(s3, gateway, "other")[2] == b"other"
    path.write_bytes(content)
    os.truncate(path, at + 100)
    assert get(s3, gateway, "small")[0] == 503


def test_scrub_beside_the_server(gateway: Gateway) -> None:
    s3 = client(gateway.endpoint)
    s3.put_object(Bucket=BUCKET, Key="large", Body=BODY)
    assert gateway.run("scrub").returncode == 0
    path = stored(gateway, "")
    assert get(s3, gateway, "large")[0] == 200
    flip(path, 3 * MIB)
    found = gateway.run("scrub", check=False)
    assert (found.returncode, "damaged/large" in found.stdout) == (8, True)
    assert get(s3, gateway, "large")[0] == 503, "at once, and from the first byte on"
    flip(path, 3 * MIB)
    assert gateway.run("scrub").returncode == 0
    assert get(s3, gateway, "large") == (200, len(BODY), BODY, True)
