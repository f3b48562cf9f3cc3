"""An inventory goes on where its writer was killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.functional.test_inventory import configure, delivered, described, let, rows
from tests.reliability.crash.scene import BUCKET, Scene
from tests.support.gateway import client
from tests.support.places import placed

pytestmark = pytest.mark.crash


@pytest.fixture(params=["here", "postgres"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    with placed(tmp_path, request.param) as place, Scene(tmp_path, place=place) as made:
        yield made


def test_written_but_not_noted(scene: Scene) -> None:
    scene.s3.create_bucket(Bucket="target")
    let(scene.s3, BUCKET, "target")
    keys = [f"k{number}" for number in range(20)]
    for key in keys:
        scene.s3.put_object(Bucket=BUCKET, Key=key, Body=b"x")
    workers = set(scene.gateway.children())
    scene.arm("inventory.written")
    configure(scene.s3, BUCKET, described("target"))
    scene.wait_until(lambda: not workers <= set(scene.gateway.children()), "a worker came to it")
    scene.disarm()
    # the worker that took over may be dying too, and take a connection with it
    patient = client(scene.gateway.endpoint, retries={"total_max_attempts": 5})
    manifest = delivered(patient, "target", BUCKET)
    assert sorted(row["Key"] for row in rows(patient, "target", manifest)) == sorted(keys)
    listed = patient.list_objects_v2(Bucket="target", Prefix=f"reports/{BUCKET}/list/data/")["Contents"]
    assert len(listed) > len(manifest["files"]) == 1, json.dumps(manifest)
