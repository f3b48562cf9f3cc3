"""A crash after every step of every operation: the old state or the new one, whole, and nothing left over."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.operations import CASES, COMMITTED, GARBAGE_POINTS, NEW, SWEEP_POINTS, Act, overwrite, put_new
from tests.crash.scene import BUCKET, Scene, already_ended
from tests.gateway import ROOT

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def module_scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    # what is replaced stays, so that no garbage collection commits between arming and the operation
    scene = Scene(tmp_path_factory.mktemp("crash"), workers=1, SLUICE_DISCARD_GRACE="86400")
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
    """A gateway that collects garbage at once."""
    scene = Scene(tmp_path, SLUICE_DISCARD_GRACE="0")
    with scene:
        yield scene


@pytest.mark.parametrize(("operation", "point"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_old_or_new(scene: Scene, operation: Callable[[Any, str], Act], point: str) -> None:
    key = f"{operation.__name__} {point}"
    twin = f"{key} undisturbed"
    operation(scene.s3, twin)()
    new = scene.look(twin)
    act = operation(scene.s3, key)
    old = scene.look(key)
    assert old != new

    scene.crash(point, act)

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


def test_every_point_has_its_test() -> None:
    named = {
        point
        for package in ("app", "storage_drivers")
        for path in (ROOT / package).rglob("*.py")
        for point in re.findall(r"(?:crash_point|_at)\(\"([a-z._]+)\"\)", path.read_text())
    }
    assert named == {point for _, point in CASES} | set(GARBAGE_POINTS) | set(SWEEP_POINTS)
