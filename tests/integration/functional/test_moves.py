"""`sluice bucket move` beside a running server: readers and writers do not notice, and kill -9 only delays it."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from tests.integration.functional.test_stores import configured, files, make
from tests.support.environment import sized
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

KEYS = sized(60, 2000)
SIZES = (100, 5000, 400_000)
PAUSE_SECONDS = sized(0.03, 0.0)
"""Between two requests of a user: a move takes as long as it takes, and they would only take its cores."""


def body(key: str, turn: int) -> bytes:
    """Bytes that only this write has."""
    unit = f"{key} {turn} ".encode()
    return unit * (SIZES[hash(key) % 3] // len(unit) + 1)


class User(threading.Thread):
    """Reads, writes and deletes keys of its own, and remembers what it was told."""

    def __init__(self, endpoint: str, bucket: str, number: int, *, forgiving: bool) -> None:
        super().__init__()
        self._s3 = client(endpoint, region="eu-west-1")
        self._bucket = bucket
        self._chance = random.Random(number)
        self._keys = [f"u{number}/{key}" for key in range(KEYS // 3)]
        self._forgiving = forgiving
        self._ending = threading.Event()
        self.there: dict[str, bytes] = {}
        self.unknown: dict[str, bytes | None] = {}
        """What the last change of a key would have made, when it was not answered."""
        self.errors: list[Exception] = []
        self.done = 0

    def fill(self) -> None:
        for key in self._keys:
            self._put(key, 0)

    def _put(self, key: str, turn: int) -> None:
        data = body(key, turn)
        self.unknown[key] = data
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=data)
        self.there[key] = data
        del self.unknown[key]

    def run(self) -> None:
        turn = 0
        while not self._ending.wait(PAUSE_SECONDS):
            turn += 1
            key = self._chance.choice(self._keys)
            try:
                self._change(key, turn)
                self.done += 1
            except (ClientError, BotoCoreError) as error:
                if not self._forgiving:
                    self.errors.append(error)
                time.sleep(0.05)

    def _change(self, key: str, turn: int) -> None:
        kind = self._chance.random()
        if key in self.unknown:
            return
        if kind < 0.3:
            self._put(key, turn)
        elif kind < 0.4:
            self.unknown[key] = None
            self._s3.delete_object(Bucket=self._bucket, Key=key)
            self.there.pop(key, None)
            del self.unknown[key]
        else:
            self.check(key)

    def check(self, key: str) -> None:
        try:
            got: bytes | None = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchKey":
                raise
            got = None
        assert got in (self.there.get(key), self.unknown.get(key, self.there.get(key))), key

    def stop(self) -> None:
        self._ending.set()
        self.join()

    def check_all(self, endpoint: str) -> None:
        self._s3 = client(endpoint, region="eu-west-1")
        for key in self._keys:
            self.check(key)


def moving(gateway: Gateway, bucket: str) -> Any:
    """The store that older data of a bucket comes from, None when all is there."""
    with httpx.Client(base_url=gateway.admin, headers={"authorization": "Bearer admin-token"}) as admin:
        return admin.get(f"/api/v1/buckets/{bucket}").json()["moving_from"]


def moved(gateway: Gateway, store: str) -> str:
    """What a move of the bucket `moved` prints."""
    printed: str = gateway.run("bucket", "move", "moved", store, check=False).stdout
    return printed


def upload(s3: Any, bucket: str) -> bytes:
    """An object of parts, and a copy of it in another bucket of the store."""
    place = {
        "Bucket": bucket,
        "Key": "parts",
        "UploadId": s3.create_multipart_upload(Bucket=bucket, Key="parts")["UploadId"],
    }
    parts = [b"1" * (5 << 20), b"2" * 1000]
    tags = [s3.upload_part(**place, PartNumber=n, Body=part)["ETag"] for n, part in enumerate(parts, 1)]
    named = [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(tags, 1)]
    s3.complete_multipart_upload(**place, MultipartUpload={"Parts": named})
    return b"".join(parts)


def test_nobody_notices(tmp_path: Path) -> None:
    with configured(tmp_path) as gateway:
        s3 = client(gateway.endpoint, region="eu-west-1")
        make(s3, "moved", "eu-west-1:fast")
        make(s3, "stays", "eu-west-1:fast")
        whole = upload(s3, "moved")
        s3.copy_object(Bucket="stays", Key="parts", CopySource={"Bucket": "moved", "Key": "parts"})
        users = [User(gateway.endpoint, "moved", number, forgiving=False) for number in range(3)]
        for user in users:
            user.fill()
            user.start()
        for store in ("slow", "fast", "slow"):
            eventually(lambda store=store: gateway.run("bucket", "move", "moved", store, check=False).returncode == 0)
            assert moving(gateway, "moved") is None
            done = f"all of moved is on the store {store}\n"  # refused until the move is written down beside the data
            eventually(lambda store=store, done=done: moved(gateway, store) == done)
            assert s3.head_bucket(Bucket="moved")["ResponseMetadata"]["HTTPHeaders"]["x-sluice-store"] == store
        for user in users:
            user.stop()
            assert user.errors == []
            assert user.done > 10
            user.check_all(gateway.endpoint)
        for bucket in ("moved", "stays"):
            assert s3.get_object(Bucket=bucket, Key="parts")["Body"].read() == whole
        gone = ("bucket", "move", "moved")
        assert gateway.run(*gone, "none", check=False).returncode == 3
        assert gateway.run("bucket", "move", "none", "slow", check=False).returncode == 3
        assert gateway.run("fsck", check=False).stdout.endswith("clean\n")
        # what is left on the store that it came from is what others share, and packs that are not compacted yet
        eventually(lambda: len([path for path in files(tmp_path / "fast") if not path.suffix]) == 1)


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(sized(1, 20)))
def test_it_goes_on_after_a_kill(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    gateway = configured(tmp_path)
    with gateway:
        s3 = client(gateway.endpoint, region="eu-west-1")
        make(s3, "moved", "eu-west-1:fast")
        whole = upload(s3, "moved")
        users = [User(gateway.endpoint, "moved", number, forgiving=True) for number in range(3)]
        for user in users:
            user.fill()
            user.start()
        assert gateway.run("bucket", "move", "moved", "slow", "--no-wait").returncode == 0
        for _ in range(sized(2, 4)):
            time.sleep(chance.uniform(0.2, 1.5))
            gateway.kill()
            gateway.start()
        eventually(lambda: moving(gateway, "moved") is None)
        for user in users:
            user.stop()
            user.check_all(gateway.endpoint)
        s3 = client(gateway.endpoint, region="eu-west-1")
        assert s3.get_object(Bucket="moved", Key="parts")["Body"].read() == whole
        report = gateway.run("fsck", check=False)
        assert report.stdout.endswith("clean\n"), report.stdout
        eventually(lambda: not [path for path in files(tmp_path / "fast") if not path.suffix])


def test_a_bucket_whose_store_is_not_in_the_settings(tmp_path: Path) -> None:
    with configured(tmp_path) as gateway:
        make(client(gateway.endpoint, region="eu-west-1"), "moved", "eu-west-1:slow")
        config = tmp_path / "sluice.toml"
        config.write_text(config.read_text().partition("[stores.slow]")[0])
        told = gateway.run("bucket", "move", "moved", "fast", check=False)
        assert told.returncode == 3
        assert "'slow', which is not in the settings" in told.stderr
        assert moving(gateway, "moved") is None


def test_a_move_is_cancelled(tmp_path: Path) -> None:
    with configured(tmp_path) as gateway:
        make(client(gateway.endpoint, region="eu-west-1"), "moved", "eu-west-1:slow")
    assert gateway.run("bucket", "cancel-move", "none", check=False).returncode == 3
    assert gateway.run("bucket", "cancel-move", "moved", check=False).returncode == 1
    gateway.run("bucket", "move", "moved", "fast")
    for store in ("slow", "fast"):  # the second time that of the first
        assert f"back to the store {store}" in gateway.run("bucket", "cancel-move", "moved").stderr
