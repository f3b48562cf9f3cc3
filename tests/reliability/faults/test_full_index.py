"""Index and data on one tiny ext4 that fills up: what frees space goes on, what needs some is refused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.index.sqlite.checkpoint import Checkpointer, wal_size
from sluice_s3.app.index.sqlite.connection import one_row, open_connection
from sluice_s3.app.index.sqlite.disk_reserve import DiskReserve
from tests.reliability.faults.test_disk import FULL, Disk
from tests.reliability.faults.two import BODIES, LARGE, SMALL, outcome
from tests.support.environment import need, need_root, sized
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

pytestmark = pytest.mark.power
IMAGE_BYTES = 160 << 20
BUCKET = "full"
CLIENTS = 8


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    need_root()
    need("mkfs.ext4", "mount", "umount")
    # blocks of a page, as larger disks have: of shorter ones SQLite leaves some of its shared memory a hole
    made = Disk(tmp_path, IMAGE_BYTES, 4096)
    made.mount()
    yield made
    made.unmount()


@pytest.fixture
def gateway(tmp_path: Path, disk: Disk) -> Iterator[Gateway]:
    # replaced and deleted data stays until the test changes this: for as long nothing that is deleted gives any space
    env = {"SLUICE_DISCARD_GRACE": "600", "SLUICE_PACK_THRESHOLD": "4096"}
    with Gateway(tmp_path / "gateway", 1, env=env, given=("--data", str(disk.path / "data"))) as started:
        yield started


def read(s3: Any, key: str) -> bytes:
    body: bytes = s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    return body


def additions(s3: Any, upload: str, name: int) -> dict[str, bytes | None]:
    """Requests that need space: each is refused, or has its effect in space that the log gave back.

    Returns for each key the body that was stored, None where every request was refused.
    """
    added: dict[str, bytes | None] = {}
    source = {"CopySource": f"{BUCKET}/small-0000"}
    for _ in range(5):
        for key, call, given, body in [
            *((f"put-{size}-{name}", s3.put_object, {"Body": body}, body) for size, body in BODIES.items()),
            (f"put-empty-{name}", s3.put_object, {"Body": b""}, b""),
            (f"copy-{name}", s3.copy_object, source, SMALL),
        ]:
            answer = outcome(call, Bucket=BUCKET, Key=key, **given)
            assert answer in (FULL, (200, ""))
            added[key] = added.get(key) if answer == FULL else body
        part = {"UploadId": upload, "PartNumber": 1 + name, "Body": SMALL}
        assert outcome(s3.upload_part, Bucket=BUCKET, Key="upload", **part) in (FULL, (200, ""))
        assert outcome(s3.create_multipart_upload, Bucket=BUCKET, Key=f"upload-{name}") in (FULL, (200, ""))
    return added


def check_added(s3: Any, added: dict[str, bytes | None]) -> None:
    for key, body in added.items():
        if body is None:
            assert outcome(s3.head_object, Bucket=BUCKET, Key=key)[0] == 404
        else:
            assert read(s3, key) == body


def test_deletes_when_all_is_full(gateway: Gateway, disk: Disk) -> None:
    s3 = client(gateway.endpoint, max_pool_connections=2 * CLIENTS)
    s3.create_bucket(Bucket=BUCKET)
    count = sized(120, 400)
    for number in range(count):
        s3.put_object(Bucket=BUCKET, Key=f"small-{number:04}", Body=SMALL)
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="upload")["UploadId"]
    large: list[str] = []
    while outcome(s3.put_object, Bucket=BUCKET, Key=f"large-{len(large):04}", Body=LARGE) == (200, ""):
        large.append(f"large-{len(large):04}")
    disk.fill()
    # until also what the log had before is used up, and nothing goes in that asks nothing of the data's disk
    empty = (outcome(s3.put_object, Bucket=BUCKET, Key=f"empty-{number:06}", Body=b"") for number in range(100_000))
    assert FULL in empty
    with ThreadPoolExecutor(2 * CLIENTS) as clients:
        others = [clients.submit(additions, s3, upload, name) for name in range(CLIENTS)]
        gone = [f"small-{number:04}" for number in range(1, count // 2)]
        answers = list(clients.map(lambda key: outcome(s3.delete_object, Bucket=BUCKET, Key=key), gone))
        assert answers == [(204, "")] * len(gone)
        added = {key: body for other in others for key, body in other.result().items()}
    answer = s3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": key} for key in large[1:]]})
    assert "Errors" not in answer
    s3.abort_multipart_upload(Bucket=BUCKET, Key="upload", UploadId=upload)
    assert outcome(s3.get_object, Bucket=BUCKET, Key=gone[0])[0] == 404
    assert read(s3, large[0]) == LARGE
    assert read(s3, "small-0000") == SMALL
    assert s3.list_objects_v2(Bucket=BUCKET, Prefix="small")["KeyCount"] == count - len(gone)
    check_added(s3, added)
    gateway.kill()
    gateway.env["SLUICE_DISCARD_GRACE"] = "0"
    gateway.start()
    s3 = client(gateway.endpoint)
    for size, body in BODIES.items():
        again = {"Bucket": BUCKET, "Key": f"again-{size}", "Body": body}
        eventually(lambda again=again: outcome(s3.put_object, **again) == (200, ""), "space came back")
        assert read(s3, f"again-{size}") == body
    check_added(s3, added)


def test_a_restart_when_all_is_full(gateway: Gateway, disk: Disk) -> None:
    s3 = client(gateway.endpoint)
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="k", Body=LARGE)
    disk.fill()
    assert outcome(s3.put_object, Bucket=BUCKET, Key="new", Body=LARGE) == FULL
    gateway.kill()
    gateway.start()
    assert read(s3, "k") == LARGE
    assert outcome(s3.put_object, Bucket=BUCKET, Key="new", Body=LARGE) == FULL
    assert outcome(s3.delete_object, Bucket=BUCKET, Key="k") == (204, "")
    disk.ballast.unlink()
    eventually(lambda: outcome(s3.put_object, Bucket=BUCKET, Key="k", Body=LARGE) == (200, ""), "space came back")


def test_a_log_that_cannot_be_copied_back(tmp_path: Path) -> None:
    """The database has to grow by what the log holds: it grows into what is kept, and the log gives its space back."""
    need_root()
    need("mkfs.ext4", "mount", "umount")
    disk = Disk(tmp_path, 40 << 20, 4096)
    disk.mount()
    path, lock = disk.path / "index.db", tmp_path / "index.lock"
    wal = path.with_name("index.db-wal")
    with ExitStack() as opened:
        opened.callback(disk.unmount)
        writer = opened.enter_context(contextlib.closing(open_connection(path, create=True)))
        copier = opened.enter_context(contextlib.closing(open_connection(path)))
        reader = opened.enter_context(contextlib.closing(open_connection(path)))
        writer.execute("CREATE TABLE rows (key TEXT PRIMARY KEY)")
        checkpointer = Checkpointer(lambda: copier, wal, tmp_path / "checkpoint.lock", lock)
        reserve = DiskReserve(wal)
        numbers = iter(range(1_000_000))

        def add(count: int) -> None:
            with writer:
                writer.executemany("INSERT INTO rows VALUES (?)", ((f"{next(numbers):0500}",) for _ in range(count)))

        while not reserve.is_short():
            # of commits that overlap some reader always leaves the end of the log in use: it never begins anew
            reader.execute("BEGIN")
            one_row(reader, "SELECT count(*) FROM rows")
            checkpointer.checkpoint(copier)
            add(500)
            reader.execute("COMMIT")
        disk.fill()
        checkpointer.checkpoint(copier)
        assert wal_size(wal) == 0
        disk.ballast.unlink()
        assert not reserve.is_short()
        add(500)
        assert one_row(reader, "SELECT count(*) FROM rows") == (next(numbers),)
        assert one_row(reader, "PRAGMA integrity_check") == ("ok",)
