"""A crash while a body is written to several files at once, or its files are taken away: all of it, or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.crash.operations import COMMITTED, FILE_POINTS, SWEEP_POINTS, WRITE_POINTS
from tests.reliability.crash.scene import BUCKET, Scene
from tests.support.places import Place

pytestmark = pytest.mark.crash

OLD, NEW = os.urandom(1 << 20), os.urandom(2 << 20)
PARTS = 8


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def scene(tmp_path: Path, store: Path) -> Iterator[Scene]:
    place = Place({"driver": "efs", "path": str(store)})
    with Scene(tmp_path, workers=1, place=place, SLUICE_DISCARD_GRACE="0") as scene:
        yield scene


def files(store: Path) -> int:
    """All files of blobs, also those that have no first one any more."""
    return sum(1 for path in (store / "data").glob("*/*") if not path.name.endswith((".pack", ".journal")))


@pytest.mark.parametrize("point", [*FILE_POINTS, *WRITE_POINTS])
def test_old_or_new_and_nothing_left(scene: Scene, store: Path, point: str) -> None:
    scene.s3.put_object(Bucket=BUCKET, Key="key", Body=OLD)
    scene.crash(point, lambda: scene.s3.put_object(Bucket=BUCKET, Key="key", Body=NEW), "key")
    found = scene.s3.get_object(Bucket=BUCKET, Key="key")["Body"].read()
    assert found == (NEW if point in COMMITTED else OLD)
    assert scene.fsck() == ""
    scene.wait_until(lambda: files(store) == PARTS, "only the parts of the object are there")


@pytest.mark.parametrize("point", ["discard.unlinked", "discard.synced", "garbage.discarded"])
def test_garbage_is_collected_after_all(scene: Scene, store: Path, point: str) -> None:
    scene.s3.put_object(Bucket=BUCKET, Key="key", Body=OLD)
    scene.crash_in_background(point, lambda: scene.s3.put_object(Bucket=BUCKET, Key="key", Body=NEW))
    assert scene.s3.get_object(Bucket=BUCKET, Key="key")["Body"].read() == NEW
    scene.wait_until(lambda: files(store) == PARTS, "the replaced parts are gone")
    assert scene.fsck() == ""


@pytest.mark.parametrize("point", SWEEP_POINTS)
def test_a_sweep_that_crashes_is_done_again(scene: Scene, store: Path, point: str) -> None:
    scene.s3.put_object(Bucket=BUCKET, Key="kept", Body=OLD)
    scene.arm("put.directory_synced")
    with pytest.raises(Exception, match=r"(?i)connection"):
        scene.s3.put_object(Bucket=BUCKET, Key="lost", Body=NEW)
    scene.gateway.kill()
    assert PARTS < files(store) <= 2 * PARTS
    scene.arm(point)
    with pytest.raises(RuntimeError, match="did not start"):
        scene.gateway.start()
    scene.gateway.process = None
    scene.start()
    assert files(store) == PARTS
    assert scene.fsck() == ""
    assert scene.s3.get_object(Bucket=BUCKET, Key="kept")["Body"].read() == OLD
