"""Archives and previews of the console, from a session's requests to the bytes, on a real gateway."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway, client

ARCHIVES = "/api/v1/archives"


@pytest.fixture(scope="module")
def s3(gateway: Gateway) -> Iterator[Any]:
    made = client(gateway.endpoint)
    made.create_bucket(Bucket="pictures")
    for key, body in {"a/1.txt": b"one", "a/../x": b"odd", "a/b/2.jpg": bytes(300_000), "other": b"no"}.items():
        made.put_object(Bucket="pictures", Key=key, Body=body)
    yield made
    made.close()


@contextmanager
def sign_in(gateway: Gateway, access_key: str = ACCESS_KEY, secret_key: str = SECRET_KEY) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=gateway.admin, headers={"origin": gateway.admin}, timeout=60) as browser:
        answer = browser.post("/api/v1/session", json={"access_key": access_key, "secret_key": secret_key})
        assert answer.is_success, answer.text
        browser.headers["x-sluice-csrf"] = answer.json()["csrf"]
        yield browser


@pytest.fixture(scope="module")
def browser(gateway: Gateway, s3: Any) -> Iterator[httpx.Client]:
    with sign_in(gateway) as one:
        yield one


def test_a_folder_is_measured_and_downloaded_once(browser: httpx.Client) -> None:
    cost = browser.post(ARCHIVES, json={"bucket": "pictures", "prefixes": ["a/"], "root": "a/"}).json()
    assert (cost["objects"], cost["bytes"], cost["unreadable"], cost["name"]) == (3, 300_006, 0, "a.zip")
    assert browser.get(f"{cost['path']}/progress").json()["state"] == "waiting"
    answer = browser.get(cost["path"])
    progress = browser.get(f"{cost['path']}/progress").json()
    assert progress == {"state": "done", "objects": 3, "bytes": 300_006, "failed": 0}
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"] == "attachment; filename=\"a.zip\"; filename*=UTF-8''a.zip"
    assert answer.headers["x-content-type-options"] == "nosniff"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert {name: len(archive.read(name)) for name in archive.namelist()} == {
            "__/x": 3,
            "1.txt": 3,
            "b/2.jpg": 300_000,
        }
    assert browser.get(cost["path"]).status_code == 404


def test_it_has_what_the_person_may_read(gateway: Gateway, browser: httpx.Client) -> None:
    iam = boto3.client(
        "iam",
        endpoint_url=gateway.endpoint,
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )
    iam.create_user(UserName="reader")
    policy = (
        '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:GetObject","s3:ListBucket"],"Resource":'
        '["arn:aws:s3:::pictures","arn:aws:s3:::pictures/a/1.txt"]}]}'
    )
    iam.put_user_policy(UserName="reader", PolicyName="p", PolicyDocument=policy)
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    iam.close()
    with sign_in(gateway, key["AccessKeyId"], key["SecretAccessKey"]) as reader:
        cost = reader.post(ARCHIVES, json={"bucket": "pictures", "keys": ["other", "a/1.txt"], "prefixes": ["a/b/"]})
        assert (cost.json()["objects"], cost.json()["unreadable"]) == (2, 1)
        assert browser.get(cost.json()["path"]).status_code == 404, "a ticket belongs to its session"
        assert browser.get(f"{cost.json()['path']}/progress").status_code == 404, "and so does its progress"
        with zipfile.ZipFile(io.BytesIO(reader.get(cost.json()["path"]).content)) as archive:
            assert archive.namelist() == ["a/1.txt", "ERRORS.txt"]
            errors = archive.read("ERRORS.txt").decode()
        assert reader.get(f"{cost.json()['path']}/progress").json()["failed"] == 2
        assert "\nother: AccessDenied" in errors
        assert "\na/b/2.jpg: AccessDenied" in errors


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"bucket": "pictures"}, 422),
        ({"bucket": "../etc", "keys": ["a"]}, 422),
        ({"bucket": "pictures", "keys": ["k"] * 1001}, 422),
        ({"bucket": "pictures", "keys": [""]}, 422),
        ({"bucket": "nothing-there", "prefixes": [""]}, 404),
    ],
)
def test_bad_requests(browser: httpx.Client, body: dict[str, Any], status: int) -> None:
    answer = browser.post(ARCHIVES, json=body)
    assert answer.status_code == status
    assert answer.json()["detail"]


def test_without_a_session_there_is_nothing(gateway: Gateway, browser: httpx.Client) -> None:
    path = browser.post(ARCHIVES, json={"bucket": "pictures", "keys": ["other"]}).json()["path"]
    with httpx.Client(base_url=gateway.admin) as stranger:
        assert stranger.get(path).status_code == 401
        assert stranger.post(ARCHIVES, json={"bucket": "pictures", "keys": ["other"]}).status_code == 401
        token = (gateway.data / "admin-token").read_text().strip()
        assert stranger.get(path, headers={"authorization": f"Bearer {token}"}).status_code == 400


def test_a_client_that_leaves_frees_its_place(browser: httpx.Client, s3: Any) -> None:
    s3.put_object(Bucket="pictures", Key="large.bin", Body=bytes(32 << 20), ContentType="application/zip")
    ask = {"bucket": "pictures", "keys": ["large.bin"]}
    for _ in range(4):  # twice as many as may run at once
        path = browser.post(ARCHIVES, json=ask).json()["path"]
        with browser.stream("GET", path) as answer:
            assert answer.status_code == 200
            pieces = answer.iter_raw()
            next(pieces)
            assert browser.get(f"{path}/progress").json()["state"] == "running"
        deadline = time.monotonic() + 10
        while browser.post(ARCHIVES, json=ask).status_code == 429:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        while browser.get(f"{path}/progress").json()["state"] != "broken":
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_parquet_shows_its_head(browser: httpx.Client, s3: Any, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    texts = [f"<b>{n}</b>" * 50 for n in range(1000)]
    table = pyarrow.table({"number": range(1000), "text": texts, "raw": [b"\0"] * 1000})
    parquet.write_table(table, tmp_path / "t.parquet")
    s3.upload_file(str(tmp_path / "t.parquet"), "pictures", "t.parquet")
    ask = {"bucket": "pictures", "key": "t.parquet"}
    found = browser.get("/api/v1/previews/parquet", params=ask).json()
    assert found["rows"] == 1000
    assert [column["name"] for column in found["columns"]] == ["number", "text", "raw"]
    assert len(found["head"]) == 100
    assert found["head"][1][0] == "1"
    assert found["head"][1][1].endswith("…")
    assert found["head"][1][2] == "00"
    for key, words in {"other": "no Parquet file", "gone": "no such object"}.items():
        answer = browser.get("/api/v1/previews/parquet", params=ask | {"key": key})
        assert answer.status_code == 422
        assert words in answer.json()["detail"]
