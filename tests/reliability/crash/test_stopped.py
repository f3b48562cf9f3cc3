"""A worker that is stopped, declared dead and swept cannot commit when it goes on (law 5); another takes its place."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import time
from pathlib import Path

import pytest

from sluice_s3.app.index import open_index
from sluice_s3.app.jobs.reclaim.compaction import Compactor
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.reclaim.orphan_sweeper import sweep
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.store import Store
from sluice_s3.app.store.stores import make_driver
from tests.reliability.crash.scene import BUCKET, Scene
from tests.support import postgres
from tests.support.raw_http import Client, make_request
from tests.support.waiting import eventually

pytestmark = pytest.mark.crash

KEYS = [f"key {number:02}" for number in range(70)]
KEPT = KEYS[::4]


def body(key: str) -> bytes:
    """18 kB that only this key has."""
    return (key.encode() + b"/").ljust(8, b".") * 2250


def stop(scene: Scene, pid: int) -> None:
    """Stop a worker at a time when it does not hold the index's lock, which would keep everybody else from it too."""
    lock = os.open(scene.gateway.data / "index" / "run" / "index.lock", os.O_RDWR)

    def stopped() -> bool:
        os.kill(pid, signal.SIGSTOP)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.kill(pid, signal.SIGCONT)
            return False
        return True

    try:
        eventually(stopped, "stopped without the index's lock")
    finally:
        os.close(lock)


async def take_over(settings: Settings) -> int:
    """Declare the other writer dead, sweep it, delete most objects and compact what it wrote; returns packs gone."""
    index = open_index(settings)
    driver = make_driver(settings)
    await index.start()
    await driver.start()
    store = Store(index, driver)
    store.open_packs()
    try:
        own = index.incarnation  # type: ignore[attr-defined]
        before = {pack.id for pack in await index.packs()}
        await sweep(store, lambda writer: writer.incarnation != own)
        assert [writer.incarnation for writer in await index.writers()] == [own]
        bucket = await index.bucket(BUCKET)
        assert bucket is not None
        for key in set(KEYS) - set(KEPT):
            await objects.delete(store, bucket.id, key, None, None, {})
        clock = [1000.0]
        garbage = GarbageCollector(store, lambda: 2, lambda: 1, 0)
        compactor = Compactor(store, 1 << 30, 0, lambda moved, freed: None, lambda: clock[0])
        for _ in range(6):
            await garbage.run_once()
            clock[0] += 1000
            await compactor.run_once()
        return len(before - {pack.id for pack in await index.packs()})
    finally:
        await store.close_packs()
        await store.ids.close()
        await index.close()
        await driver.close()


@pytest.mark.skipif(postgres.CHOSEN == "postgres", reason="cluster/test_takeover.py does it with gateways")
@pytest.mark.parametrize("size", [1000, 3_000_000], ids=["record", "file"])
def test_stopped_swept_and_continued(tmp_path: Path, size: int) -> None:
    with Scene(tmp_path, workers=1, SLUICE_PACK_SIZE=str(1 << 20)) as scene:
        for key in KEYS:
            scene.s3.put_object(Bucket=BUCKET, Key=key, Body=body(key))
        (worker,) = scene.gateway.children()
        url = scene.s3.generate_presigned_url("put_object", {"Bucket": BUCKET, "Key": "late"})
        late = Client(url)
        late.begin(make_request("PUT", url, body=b"x" * (size // 2), length=size))
        time.sleep(0.5)  # most likely the worker waits for the rest by now; any other moment must do too
        stop(scene, worker)
        settings = Settings(data=scene.gateway.data, pack_size=1 << 20)
        assert asyncio.run(take_over(settings)) >= 1, "what the stopped worker wrote was given back"
        os.kill(worker, signal.SIGCONT)
        try:
            late.send(b"x" * (size - size // 2))
            status = late.answer().status
        except ConnectionError:
            status = 503
        assert status == 503
        late.close()
        scene.wait_until(lambda: worker not in scene.gateway.children(), "the worker that was declared dead ended")
        scene.wait_until(lambda: bool(scene.gateway.children()), "another took its place")
        scene.s3.put_object(Bucket=BUCKET, Key="after", Body=b"served on")
        for key in KEPT:
            assert scene.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == body(key), key
        listed = [entry["Key"] for entry in scene.s3.list_objects_v2(Bucket=BUCKET)["Contents"]]
        assert listed == sorted([*KEPT, "after"])
        scene.wait_until(lambda: scene.fsck() == "", "fsck finds nothing")
