"""Whoever runs lifecycle rules is killed: nothing goes that is not due, all that is due goes, nothing is left over."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.reliability.crash.scene import BUCKET, Scene
from tests.support.environment import sized
from tests.support.places import Place

pytestmark = pytest.mark.crash

MANY = 240


def rule(number: int, prefix: str, **action: Any) -> dict[str, Any]:
    return {"ID": f"r{number}", "Status": "Enabled", "Filter": {"Prefix": prefix}, **action}


def fill(s3: Any) -> dict[str, bytes]:
    """Objects to go and to stay, and versions of both; returns what must be there for ever."""
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    kept = {}
    for number in range(MANY):
        s3.put_object(Bucket=BUCKET, Key=f"old/{number:03}", Body=b"%d" % number)
        if number % 12 == 0:
            body = b"stays %d" % number
            for version in (b"before", body):
                s3.put_object(Bucket=BUCKET, Key=f"new/{number:03}", Body=version)
            kept[f"new/{number:03}"] = body
    return kept


def begin(s3: Any) -> None:
    rules = [
        rule(1, "old/", Expiration={"Days": 1}, NoncurrentVersionExpiration={"NoncurrentDays": 1}),
        rule(2, "new/", NoncurrentVersionExpiration={"NoncurrentDays": 1}),
        rule(3, "never/", Expiration={"Days": 1_000_000}),
    ]
    s3.put_bucket_lifecycle_configuration(Bucket=BUCKET, LifecycleConfiguration={"Rules": rules})


def left(scene: Scene) -> dict[str, list[str]]:
    """Version ids and delete markers of each key."""
    found: dict[str, list[str]] = {}
    for page in scene.s3.get_paginator("list_object_versions").paginate(Bucket=BUCKET):
        for entry in page.get("Versions", []) + page.get("DeleteMarkers", []):
            found.setdefault(entry["Key"], []).append(entry["VersionId"])
    return found


def check(scene: Scene, kept: dict[str, bytes]) -> None:
    for key, body in kept.items():
        assert scene.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == body


def finish(scene: Scene, kept: dict[str, bytes]) -> None:
    def done() -> bool:
        check(scene, kept)
        found = left(scene)
        return found.keys() == kept.keys() and all(len(versions) == 1 for versions in found.values())

    scene.wait_until(done, "only what stays is there")
    assert scene.fsck() == ""


@pytest.mark.parametrize("point", ["lifecycle.expired", "lifecycle.noted", "index.commit", "index.committed"])
def test_it_goes_on_after_a_crash(tmp_path: Path, point: str) -> None:
    with Scene(tmp_path, workers=1, SLUICE_LIFECYCLE_DAY_SECONDS="1", SLUICE_DISCARD_GRACE="0") as scene:
        kept = fill(scene.s3)
        if point.startswith("index."):
            begin(scene.s3)
            scene.crash_in_background(point, lambda: None)
        else:
            scene.crash_in_background(point, lambda: begin(scene.s3))
        check(scene, kept)
        finish(scene, kept)


def test_killed_again_and_again(tmp_path: Path) -> None:
    chosen = random.Random(5)
    with Scene(tmp_path, workers=1, SLUICE_LIFECYCLE_DAY_SECONDS="1", SLUICE_LIFECYCLE_RATE="60") as scene:
        kept = fill(scene.s3)
        begin(scene.s3)
        for _ in range(sized(4, 40)):
            time.sleep(chosen.random())
            scene.gateway.kill()
            scene.start()
            check(scene, kept)
        finish(scene, kept)


BODIES = {"small": b"small" * 100, "large": b"large" * 60_000}
CLASSES = "STANDARD_IA=cold,GLACIER=cold"
TO_ARCHIVE = {"Filter": {"ObjectSizeGreaterThan": 1}, "Transitions": [{"Days": 1, "StorageClass": "GLACIER"}]}


def with_archive(directory: Path, **env: str) -> Scene:
    """A gateway with a store of archived objects beside its own, and days of a second."""
    own, cold = {"path": str(directory / "own")}, {"path": str(directory / "cold")}
    env |= {"SLUICE_STORES": json.dumps({"default": own, "cold": cold}), "SLUICE_STORAGE_CLASSES": CLASSES}
    env |= {"SLUICE_LIFECYCLE_DAY_SECONDS": "1", "SLUICE_DISCARD_GRACE": "0"}
    return Scene(directory, workers=1, place=Place(own), **env)


def put_objects(s3: Any) -> None:
    """Small and large ones, one of parts, and a copy of each."""
    for name, body in BODIES.items():
        s3.put_object(Bucket=BUCKET, Key=name, Body=body)
    upload = {"Bucket": BUCKET, "Key": "parts"}
    upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
    part = s3.upload_part(PartNumber=1, Body=BODIES["large"], **upload)
    s3.complete_multipart_upload(MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}, **upload)
    for name in (*BODIES, "parts"):
        s3.copy_object(Bucket=BUCKET, Key=f"copy/{name}", CopySource={"Bucket": BUCKET, "Key": name})


def keys() -> list[str]:
    return [prefix + name for prefix in ("", "copy/") for name in (*BODIES, "parts")]


def archive(scene: Scene) -> None:
    rules = [{"ID": "r", "Status": "Enabled", **TO_ARCHIVE}]
    scene.s3.put_bucket_lifecycle_configuration(Bucket=BUCKET, LifecycleConfiguration={"Rules": rules})


def heads(scene: Scene) -> list[dict[str, Any]]:
    return [scene.s3.head_object(Bucket=BUCKET, Key=key) for key in keys()]


def all_archived(scene: Scene) -> bool:
    return all(head.get("StorageClass") == "GLACIER" and "Restore" not in head for head in heads(scene))


def ask_for_all(scene: Scene) -> None:
    """Also again, when it was cut short."""
    for key in keys():
        try:
            scene.s3.restore_object(Bucket=BUCKET, Key=key, RestoreRequest={"Days": 300})
        except ClientError as error:
            assert error.response["Error"]["Code"] == "RestoreAlreadyInProgress"  # noqa: PT017 - one of the two ends


def all_back(scene: Scene) -> bool:
    return all('ongoing-request="false"' in head.get("Restore", "") for head in heads(scene))


@pytest.mark.parametrize("point", ["transition.copied", "transition.moved", "index.commit", "index.committed"])
def test_transitions_and_restores_go_on_after_a_crash(tmp_path: Path, point: str) -> None:
    """The old place or the new one, never none: all can be read in the end, and nothing is left over."""
    with with_archive(tmp_path) as scene:
        put_objects(scene.s3)
        scene.crash_in_background(point, lambda: archive(scene))
        scene.wait_until(lambda: all_archived(scene), "all is archived")
        assert scene.fsck() == ""
        if point.startswith("transition."):
            scene.crash_in_background(point, lambda: ask_for_all(scene))
        else:
            ask_for_all(scene)
        scene.wait_until(lambda: all_back(scene), "all is back")
        for key in keys():
            body = BODIES.get(key.removeprefix("copy/"), BODIES["large"])
            assert scene.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == body
        assert scene.fsck() == ""
