"""Access logs over crashes: lines that are written down become an object, some perhaps twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice_s3.app.s3.logging.collector import FLUSH_SECONDS
from tests.integration.functional.test_logging import enable, let, logged
from tests.reliability.crash.scene import BUCKET, Scene
from tests.support.places import placed

pytestmark = pytest.mark.crash


@pytest.fixture(params=["here", "postgres"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    with placed(tmp_path, request.param) as place, Scene(tmp_path, place=place, SLUICE_LOG_INTERVAL="3") as made:
        made.s3.create_bucket(Bucket="target")
        let(made.s3, BUCKET, "target")
        enable(made.s3, BUCKET, "target")
        yield made


def keys_of(scene: Scene, count: int) -> list[str]:
    """The keys of the lines, in their order, once there are so many."""
    _, lines = logged(scene.s3, "target", lambda lines: len(lines) >= count)
    return [line["key"] for line in lines if line["operation"] == "REST.PUT.OBJECT"]


def test_written_but_not_forgotten(scene: Scene) -> None:
    workers = set(scene.gateway.children())
    scene.arm("logs.written")
    scene.s3.put_object(Bucket=BUCKET, Key="k", Body=b"")
    scene.wait_until(lambda: not workers <= set(scene.gateway.children()), "a worker came to it")
    scene.disarm()
    keys = keys_of(scene, 2)  # one more for every worker that came to it before it was disarmed
    assert len(keys) >= 2
    assert set(keys) == {"k"}


def test_what_is_written_down_survives_a_kill(scene: Scene) -> None:
    for number in range(5):
        scene.s3.put_object(Bucket=BUCKET, Key=f"k{number}", Body=b"")
    time.sleep(2 * FLUSH_SECONDS)  # what came in the last one is lost
    scene.gateway.kill()
    scene.start()
    assert sorted(set(keys_of(scene, 5))) == [f"k{number}" for number in range(5)]
