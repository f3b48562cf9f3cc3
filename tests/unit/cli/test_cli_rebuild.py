"""`sluice rebuild` on the data of a real gateway that was killed: what was acknowledged before the window is there."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from tests.support.environment import sized
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

BUCKET = "rebuilt"
LARGE = 300_000
WINDOW = 3.0
"""Seconds: more than the second that a round waits, for machines that are busy."""


class Writer:
    """Changes keys of its own, one after the other, and notes what was acknowledged when."""

    def __init__(self, endpoint: str, number: int) -> None:
        self._s3 = client(endpoint)
        self._random = random.Random(number)
        self._number = number
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.history: dict[str, list[tuple[float, str | None]]] = {}
        """By key: when each change was acknowledged, and the hash of what it left (None: nothing)."""
        self.refused: set[str] = set()
        """Hashes of bodies that were refused."""
        self.unknown: dict[str, str | None] = {}

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            key = f"{self._number}/{self._random.randrange(40)}"
            change = self._random.choices((self._put, self._create, self._delete, self._copy), (6, 2, 2, 2))[0]
            try:
                change(key)
            except (BotoCoreError, ConnectionError):
                return
            except ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500:
                    return

    def stop(self) -> None:
        self._ending.set()
        self._thread.join(60)

    def _body(self) -> tuple[bytes, str]:
        body = self._random.randbytes(self._random.choice((100, 3000, LARGE)))
        return body, hashlib.sha256(body).hexdigest()

    def _note(self, key: str, state: str | None) -> None:
        self.unknown.pop(key)
        self.history.setdefault(key, []).append((time.monotonic(), state))

    def _put(self, key: str) -> None:
        body, digest = self._body()
        self.unknown[key] = digest
        self._s3.put_object(Bucket=BUCKET, Key=key, Body=body)
        self._note(key, digest)

    def _create(self, key: str) -> None:
        body, digest = self._body()
        self.unknown[key] = digest
        try:
            self._s3.put_object(Bucket=BUCKET, Key=key, Body=body, IfNoneMatch="*")
        except ClientError as error:
            if error.response["Error"]["Code"] == "PreconditionFailed":
                self.refused.add(digest)
                del self.unknown[key]
            raise
        self._note(key, digest)

    def _delete(self, key: str) -> None:
        self.unknown[key] = None
        self._s3.delete_object(Bucket=BUCKET, Key=key)
        self._note(key, None)

    def _copy(self, key: str) -> None:
        source = f"{self._number}/{self._random.randrange(40)}"
        states = self.history.get(source)
        if not states or states[-1][1] is None:
            return
        self.unknown[key] = states[-1][1]
        self._s3.copy_object(
            Bucket=BUCKET, Key=key, CopySource={"Bucket": BUCKET, "Key": source},
            MetadataDirective="REPLACE", Metadata={"copied": "yes"},
        )  # fmt: skip
        self._note(key, states[-1][1])


def contents(s3: Any) -> dict[str, str]:
    """Hashes of all objects."""
    found = {}
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        for entry in page.get("Contents", []):
            body = s3.get_object(Bucket=BUCKET, Key=entry["Key"])["Body"].read()
            found[entry["Key"]] = hashlib.sha256(body).hexdigest()
    return found


def possible(history: list[tuple[float, str | None]], decided: float) -> set[str | None]:
    """What a key may be: its state when the window began, or any later one."""
    before = [state for at, state in history if at <= decided]
    return {before[-1] if before else None, *(state for at, state in history if at > decided)}


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(sized(2, 30)))
def test_what_was_acknowledged_before_the_window_is_there_after_a_kill(tmp_path: Path, seed: int) -> None:
    gateway = Gateway(tmp_path / "data", env={"SLUICE_DURABILITY": "relaxed", "SLUICE_PACK_SIZE": "2000000"})
    with gateway:
        client(gateway.endpoint).create_bucket(Bucket=BUCKET)
        writers = [Writer(gateway.endpoint, number) for number in range(4)]
        for writer in writers:
            writer.start()
        time.sleep(WINDOW + random.Random(seed).uniform(1.0, sized(3.0, 20.0)))
        killed = time.monotonic()
        gateway.kill()
        for writer in writers:
            writer.stop()
        shutil.rmtree(gateway.data / "index")
        refused = gateway.run("rebuild", check=False)
        report = gateway.run("rebuild", "--json", "--replace", check=False)
        assert refused.returncode in (0, 4), refused.stdout + refused.stderr
        assert report.returncode in (0, 4), report.stderr
        found = json.loads(report.stdout)
        assert found["damage"] == []
        gateway.start()
        objects = contents(client(gateway.endpoint))
        for writer in writers:
            assert not writer.refused & set(objects.values())
            for key, history in writer.history.items():
                allowed = possible(history, killed - WINDOW) | {writer.unknown.get(key, history[-1][1])}
                assert objects.pop(key, None) in allowed, (key, history, killed)
            for key, state in writer.unknown.items():
                assert objects.pop(key, state) == state
        assert objects == {}
        fsck = gateway.run("fsck", "--json", check=False)
        assert json.loads(fsck.stdout)["missing"] == []


def test_it_refuses_beside_a_server_and_over_an_index(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data", workers=1)
    with gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="k", Body=b"x", Metadata={"a": "b"}, Tagging="put=1")
        tags = {"TagSet": [{"Key": "later", "Value": "2"}]}
        s3.put_object_tagging(Bucket=BUCKET, Key="k", Tagging=tags)
        s3.put_bucket_tagging(Bucket=BUCKET, Tagging=tags)
        before = s3.head_object(Bucket=BUCKET, Key="k")
        assert "there is an index" in gateway.run("rebuild", check=False).stderr
        refused = gateway.run("rebuild", "--replace", check=False)
        assert (refused.returncode, "a server runs" in refused.stderr) == (1, True)
        trial = ("rebuild", "--dry-run", "--json", "--progress")
        # until a write is in the journals of the running server, its outcome is unknown: exit code 4
        eventually(lambda: gateway.run(*trial, check=False).returncode == 0)
        *lines, beside = map(json.loads, gateway.run(*trial).stdout.splitlines())
        assert (beside["counts"]["versions"], lines[0].keys()) == (1, {"what", "done", "total"})
        index = gateway.data / "index"
        assert not list(index.rglob("rebuild-*"))
        gateway.stop()  # the journals lack nothing then: a server whose index was taken away writes no more of them
        gateway.start()
        index.rename(gateway.data / "hidden")
        refused = gateway.run("rebuild", check=False)
        assert (refused.returncode, "in use" in refused.stderr) == (1, True), "its lock is gone with the index"
        shutil.rmtree(index)
        (gateway.data / "hidden").rename(index)
        gateway.stop()
        dry = gateway.run("rebuild", "--dry-run", "--json")
        assert json.loads(dry.stdout)["counts"]["versions"] == 1
        assert json.loads((gateway.data / "store.json").read_text())["generation"] == 1
        done = gateway.run("rebuild", "--replace")
        assert "before-rebuild-1" in done.stdout
        assert not list(index.glob("rebuild-*"))
        gateway.start()
        s3 = client(gateway.endpoint)
        assert s3.get_object_tagging(Bucket=BUCKET, Key="k")["TagSet"] == tags["TagSet"]
        assert s3.get_bucket_tagging(Bucket=BUCKET)["TagSet"] == tags["TagSet"]
        after = s3.head_object(Bucket=BUCKET, Key="k")
        for name in ("ETag", "LastModified", "Metadata", "ContentLength", "ChecksumCRC32"):
            assert after.get(name) == before.get(name), name


def test_it_replaces_what_a_refused_start_left_in_place_of_the_index(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data", workers=1)
    with gateway:
        client(gateway.endpoint).create_bucket(Bucket=BUCKET)
        gateway.stop()
        shutil.rmtree(gateway.data / "index")
        started = gateway.run("serve", "--port", "0", "--admin-port", "-1", check=False)
        assert "no index of it" in started.stderr
        assert (gateway.data / "index" / "sluice.db").exists()
        assert json.loads(gateway.run("rebuild", "--json").stdout)["counts"]["buckets"] == 1
        again = gateway.run("rebuild", check=False)
        assert (again.returncode, "give --replace" in again.stderr) == (1, True)
