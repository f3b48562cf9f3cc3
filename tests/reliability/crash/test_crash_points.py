"""A crash after every step of every operation: the old state or the new one, whole, and nothing left over."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.crash.ledger import UNKNOWN
from tests.reliability.crash.operations import (
    CASES,
    COMMITTED,
    COMPACTION_POINTS,
    DECISION_POINTS,
    GARBAGE_POINTS,
    LARGE,
    MOVE_POINTS,
    NEW,
    RECORD_POINTS,
    SWEEP_POINTS,
    TREE_CASES,
    TREE_SWEEP_POINTS,
    Act,
    overwrite,
    put_new,
)
from tests.reliability.crash.scene import BUCKET, Scene, already_ended
from tests.support.environment import ROOT

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def module_scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    # with nothing in the background, which comes by some of the points, too
    scene = Scene(tmp_path_factory.mktemp("crash"), workers=1, jobs=False)
    with scene:
        yield scene


@pytest.fixture
def scene(module_scene: Scene) -> Scene:
    """The module's gateway, running whatever the test before did."""
    if module_scene.gateway.process is None:
        module_scene.start()
    return module_scene


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Scene]:
    """A gateway that collects garbage at once, and keeps every blob in a file of its own."""
    scene = Scene(tmp_path, SLUICE_DISCARD_GRACE="0", SLUICE_PACK_THRESHOLD="0")
    with scene:
        yield scene


@pytest.fixture
def packing(tmp_path: Path) -> Iterator[Scene]:
    """A gateway with small packs, whose space comes back at once."""
    scene = Scene(tmp_path, workers=1, SLUICE_DISCARD_GRACE="0", SLUICE_PACK_SIZE=str(1 << 20))
    with scene:
        yield scene


def test_commits_of_other_things_are_spared(scene: Scene) -> None:
    scene.arm("index.committed", repr("cut"))
    scene.s3.put_object(Bucket=BUCKET, Key="spared", Body=NEW)
    scene.s3.put_object(Bucket=BUCKET, Key="spared, too", Body=3 * LARGE)
    with pytest.raises(UNKNOWN):
        scene.s3.put_object(Bucket=BUCKET, Key="cut", Body=NEW)
    scene.start()
    assert scene.s3.get_object(Bucket=BUCKET, Key="cut")["Body"].read() == NEW


@pytest.mark.parametrize(("operation", "point"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_old_or_new(scene: Scene, operation: Callable[[Any, str], Act], point: str) -> None:
    key = f"{operation.__name__} {point}"
    twin = f"{key} undisturbed"
    operation(scene.s3, twin)()
    new = scene.look(twin)
    act = operation(scene.s3, key)
    old = scene.look(key)
    assert old != new
    if point == "pack.created":
        scene.start()  # a new worker's first record opens a pack

    scene.crash(point, act, key)

    assert scene.look(key) == (new if point in COMMITTED else old)
    assert scene.fsck() == ""
    already_ended(act)
    assert scene.look(key) == new


@pytest.mark.parametrize("point", GARBAGE_POINTS)
def test_garbage_is_collected_after_all(hasty: Scene, point: str) -> None:
    overwrite(hasty.s3, "key")
    hasty.wait_until(lambda: hasty.files() == 1, "only the object is there")
    if point.startswith("index."):  # these points are passed by the PUT too: arm behind it
        hasty.s3.put_object(Bucket=BUCKET, Key="key", Body=NEW)
        hasty.crash_in_background(point, lambda: None)
    else:
        hasty.crash_in_background(point, lambda: hasty.s3.put_object(Bucket=BUCKET, Key="key", Body=NEW))
    assert hasty.s3.get_object(Bucket=BUCKET, Key="key")["Body"].read() == NEW
    assert hasty.fsck() == ""
    hasty.wait_until(lambda: hasty.files() == 1, "the replaced blob is gone")


@pytest.mark.parametrize("point", SWEEP_POINTS)
def test_a_sweep_that_crashes_is_done_again(hasty: Scene, point: str) -> None:
    put_new(hasty.s3, "kept")()
    hasty.arm("put.synced")
    with pytest.raises(Exception, match=r"(?i)connection"):
        put_new(hasty.s3, "lost")()
    hasty.gateway.kill()
    assert hasty.files() == 2
    hasty.arm(point)
    with pytest.raises(RuntimeError, match="did not start"):
        hasty.gateway.start()
    hasty.gateway.process = None
    hasty.start()
    assert hasty.files() == 1
    assert hasty.fsck() == ""
    assert hasty.s3.get_object(Bucket=BUCKET, Key="kept")["Body"].read() == NEW


def test_the_others_sweep_what_a_dead_worker_left(hasty: Scene) -> None:
    put_new(hasty.s3, "kept")()
    hasty.arm("put.synced")
    with pytest.raises(Exception, match=r"(?i)connection"):
        put_new(hasty.s3, "lost")()
    hasty.disarm()
    hasty.wait_until(lambda: hasty.files() == 1, "the lost blob is swept")
    hasty.wait_until(lambda: hasty.fsck() == "", "fsck finds nothing")


def body(key: str) -> bytes:
    """18 kB that only this key has: 58 of them fill a pack."""
    return (key.encode() + b"/").ljust(8, b".") * 2250


def check(scene: Scene, keys: list[str]) -> None:
    """Every acknowledged byte is there."""
    for key in keys:
        assert scene.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == body(key), key
    listed = scene.s3.list_objects_v2(Bucket=BUCKET)["Contents"]
    assert [entry["Key"] for entry in listed] == sorted(keys)
    assert scene.fsck() == ""


def mostly_dead(scene: Scene, count: int = 70) -> tuple[list[str], set[str]]:
    """Objects over more than a pack, one of them lost on its way to the commit, another copied and deleted.

    Returns the keys of which two thirds are to be deleted, and the packs.
    """
    keys = [f"key {number:02}" for number in range(count)]
    for key in keys[:20]:
        scene.s3.put_object(Bucket=BUCKET, Key=key, Body=body(key))
    scene.crash("store.durable", lambda: scene.s3.put_object(Bucket=BUCKET, Key="lost", Body=body("lost")), "lost")
    for key in keys[20:]:
        scene.s3.put_object(Bucket=BUCKET, Key=key, Body=body(key))
    return keys, scene.packs()


@pytest.mark.parametrize("point", [*COMPACTION_POINTS, *RECORD_POINTS, "garbage.discarded"])
def test_compaction_loses_nothing_and_is_done_again(packing: Scene, point: str) -> None:
    keys, before = mostly_dead(packing)
    packing.gateway.stop()  # seals the last pack, so that all of them are compacted
    if point == "compact.buried":  # less is counted than is dead, as a commit of unknown outcome leaves it
        packing.sql("UPDATE packs SET dead = dead - 64")
    packing.start()
    kept = keys[::3]
    dead = [key for key in keys if key not in kept]
    objects = [{"Key": key} for key in dead]
    packing.crash_in_background(point, lambda: packing.s3.delete_objects(Bucket=BUCKET, Delete={"Objects": objects}))
    packing.s3.delete_objects(Bucket=BUCKET, Delete={"Objects": objects})
    check(packing, kept)
    packing.wait_until(lambda: not before & packing.packs(), "the packs that were mostly dead are gone")
    check(packing, kept)


def test_what_a_dead_worker_never_committed_is_counted(packing: Scene) -> None:
    """In its pack, so that it is compacted like what was deleted; also when a worker dies of the counting."""
    packing.s3.put_object(Bucket=BUCKET, Key="kept", Body=body("kept"))
    lost = 3 * body("lost")
    for number in range(3):
        packing.crash("store.durable", lambda: packing.s3.put_object(Bucket=BUCKET, Key="lost", Body=lost), "lost")
        packing.s3.put_object(Bucket=BUCKET, Key=f"kept {number}", Body=body("k"))
    packing.gateway.kill()
    packing.arm("compact.counted")
    log = packing.gateway.data.with_name("data.log")
    deaths = log.read_text().count("died (code 137)")
    packing.gateway.start()
    packing.wait_until(lambda: log.read_text().count("died (code 137)") > deaths, "a worker counted")
    packing.start()

    def size() -> int:
        return sum(path.stat().st_size for path in (packing.gateway.data / "data").glob("*/*.pack"))

    packing.wait_until(lambda: size() < 5 * len(body("k")), "what was lost takes no space")
    assert packing.s3.get_object(Bucket=BUCKET, Key="kept")["Body"].read() == body("kept")
    for number in range(3):
        assert packing.s3.get_object(Bucket=BUCKET, Key=f"kept {number}")["Body"].read() == body("k")
    assert packing.fsck() == ""


@pytest.mark.parametrize("point", ["discard.punched", "garbage.discarded"])
def test_a_hole_touches_nothing_that_lives(packing: Scene, point: str) -> None:
    keys = [f"key {number:02}" for number in range(30)]
    for key in keys:
        packing.s3.put_object(Bucket=BUCKET, Key=key, Body=body(key))
    dead = {"Objects": [{"Key": key} for key in keys[5:20]]}
    packing.crash_in_background(point, lambda: packing.s3.delete_objects(Bucket=BUCKET, Delete=dead))
    check(packing, keys[:5] + keys[20:])


@pytest.mark.parametrize("point", DECISION_POINTS)
def test_what_is_written_down_beside_the_data(packing: Scene, point: str) -> None:
    packing.crash_in_background(point, lambda: packing.s3.put_object(Bucket=BUCKET, Key="key", Body=body("key")))
    check(packing, ["key"])


def test_every_point_has_its_test() -> None:
    named = {
        point
        for package in ("app", "storage_drivers")
        for path in (ROOT / package).rglob("*.py")
        for point in re.findall(r"(?:crash_point|_at|_crash_hook)\(\"([a-z._]+)\"[,)]", path.read_text())
    }
    tested = (
        {point for _, point in (*CASES, *TREE_CASES)}
        | set(TREE_SWEEP_POINTS)
        | {
            "discard.punched",
            "compact.counted",
            *COMPACTION_POINTS,
            *DECISION_POINTS,
            *MOVE_POINTS,
            "inventory.written",  # test_inventory
            "lifecycle.expired",  # test_lifecycle_crash
            "lifecycle.noted",
            "transition.copied",
            "transition.moved",
            "logs.written",  # test_logging
            "notify.sent",  # test_notifications
        }
    )
    # a snapshot takes more than a crash test writes: tests/unit/jobs/test_journal_writer.py
    assert named == tested | {"decisions.snapshot", *GARBAGE_POINTS, *SWEEP_POINTS}
