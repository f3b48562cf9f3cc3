"""A crash after every step of every change of a plain file: undone or done, the file and its row alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.crash.operations import (
    DONE,
    NEW,
    STAGE_POINTS,
    TREE_CASES,
    TREE_SWEEP_POINTS,
    Act,
    overwrite,
    put_new,
)
from tests.reliability.crash.scene import BUCKET, Scene, already_ended
from tests.support.places import tree_at

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def module_scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    # nothing in the background commits between arming and the operation
    directory = tmp_path_factory.mktemp("tree")
    with Scene(directory, workers=1, jobs=False, place=tree_at(directory / "tree")) as scene:
        yield scene


@pytest.fixture
def scene(module_scene: Scene) -> Scene:
    if module_scene.gateway.process is None:
        module_scene.start()
    return module_scene


def on_disk(scene: Scene, key: str) -> bytes | None:
    path = scene.gateway.store / BUCKET / key
    return path.read_bytes() if path.exists() else None


def staged(scene: Scene) -> list[str]:
    return [path.name for path in (scene.gateway.store / ".sluice" / "staged").iterdir()]


@pytest.mark.parametrize(("operation", "point"), TREE_CASES)
def test_undone_or_done(scene: Scene, operation: Callable[[Any, str], Act], point: str) -> None:
    key = f"{operation.__name__}/{point}/k" if point == "publish.made" else f"{operation.__name__} {point}"
    twin = f"{key} undisturbed"
    operation(scene.s3, twin)()
    new = scene.look(twin)
    if point == "publish.made":
        key = f"{key} in/a directory/of its own"
    act = operation(scene.s3, key)
    old = scene.look(key)
    before = on_disk(scene, key)

    scene.crash(point, act, key)

    done = point in DONE
    assert scene.look(key) == (new if done else old)
    assert on_disk(scene, key) == (on_disk(scene, twin) if done else before)
    assert staged(scene) == []
    assert scene.fsck() == ""
    already_ended(act)
    assert scene.look(key) == new
    assert on_disk(scene, key) == on_disk(scene, twin)


@pytest.mark.parametrize("first", ["tree.begun", "publish.renamed"])
@pytest.mark.parametrize("point", TREE_SWEEP_POINTS)
def test_a_sweep_that_crashes_is_done_again(scene: Scene, first: str, point: str) -> None:
    key = f"sweep {first} {point}"
    act = overwrite(scene.s3, key)
    old = scene.look(key)
    scene.arm(first)
    with pytest.raises(Exception, match=r"(?i)connection"):
        act()
    scene.gateway.kill()
    scene.arm(point)
    with pytest.raises(RuntimeError, match="did not start"):
        scene.gateway.start()
    scene.gateway.process = None
    scene.start()
    assert (scene.look(key) == old) == (first == "tree.begun")
    assert staged(scene) == []
    act()
    assert scene.fsck() == ""


@pytest.mark.parametrize("point", ["tree.begun", "publish.renamed", STAGE_POINTS[0]])
def test_the_others_end_what_a_dead_worker_began(tmp_path: Path, point: str) -> None:
    """A reader waits for it; nobody needs a restart."""
    with Scene(tmp_path, workers=2, place=tree_at(tmp_path / "tree")) as scene:
        put_new(scene.s3, "k")()
        scene.arm(point)
        with pytest.raises(Exception, match=r"(?i)connection"):
            scene.s3.put_object(Bucket=BUCKET, Key="k", Body=b"changed" * 100_000)
        scene.disarm()
        found = scene.s3.get_object(Bucket=BUCKET, Key="k")["Body"].read()
        assert found == (b"changed" * 100_000 if point == "publish.renamed" else NEW)
        scene.wait_until(lambda: staged(scene) == [], "what was written aside is gone")
        assert on_disk(scene, "k") == found
        assert scene.fsck() == ""
