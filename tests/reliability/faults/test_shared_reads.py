"""Small objects of a slow mount: what one worker reads, the others need not read."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from sluice_s3.loadtests.mounts import Mount, mounted
from tests.reliability.faults.two import stores
from tests.support.environment import need_fuse
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

BODIES = {f"key-{number}": os.urandom(3000) for number in range(60)}


class Scene(NamedTuple):
    gateway: Gateway
    mount: Mount
    backing: Path


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A gateway of two workers that has read nothing, on a mount to which every read comes."""
    need_fuse()
    root = tmp_path_factory.mktemp("shared")
    for name in ("backing", "slow"):
        (root / name).mkdir()
    gateway = stores(root, {"slow": (root / "slow", "efs")}, limit=10.0, SLUICE_SCRUB_RATE="0")
    gateway.workers = 2
    with mounted(root / "backing", root / "slow", cached=False, ms={"read": 3.0}) as mount:
        with gateway:
            s3 = client(gateway.endpoint)
            s3.create_bucket(Bucket="many")
            for key, body in BODIES.items():
                s3.put_object(Bucket="many", Key=key, Body=body)
            s3.delete_public_access_block(Bucket="many")
            s3.put_bucket_policy(Bucket="many", Policy=PUBLIC)
        gateway.process = None
        with gateway:
            yield Scene(gateway, mount, root / "backing")


PUBLIC = """{"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::many/*"}]}"""


def read_all(scene: Scene) -> int:
    """Read every object over connections of its own, which come to both workers; return the reads of the mount."""
    before = scene.mount.counts().get("read", 0)

    def get(key: str) -> tuple[int, bytes]:
        answer = httpx.get(f"{scene.gateway.endpoint}/many/{key}", timeout=60)
        return answer.status_code, answer.content

    with ThreadPoolExecutor(8) as clients:
        answers = dict(zip(BODIES, clients.map(get, BODIES), strict=True))
    assert answers == {key: (200, body) for key, body in BODIES.items()}
    return scene.mount.counts().get("read", 0) - before


def read_without_packs(scene: Scene) -> None:
    """Read every object while no pack can be read."""
    broken = scene.mount.fault("read", "EIO", "*.pack", times=None)
    read_all(scene)
    assert scene.mount.struck(broken) == 0
    scene.mount.clear(broken)


def test_what_one_worker_read_the_other_has(scene: Scene) -> None:
    assert read_all(scene) <= 30, "60 objects, by their windows and the headers of their packs"
    for _ in range(3):
        read_without_packs(scene)


def test_a_worker_that_takes_the_place_of_a_dead_one_has_it_too(scene: Scene) -> None:
    read_all(scene)
    children = scene.gateway.children()
    os.kill(children[0], signal.SIGKILL)
    eventually(lambda: len(set(scene.gateway.children()) - set(children)) == 1)
    read_without_packs(scene)


def test_scrub_reads_the_mount(scene: Scene) -> None:
    """A record that is damaged there is found, though it is still read from memory."""
    read_all(scene)
    body = BODIES["key-7"]
    (path, at) = next((path, at) for path in scene.backing.rglob("*.pack") if (at := path.read_bytes().find(body)) >= 0)
    with path.open("r+b") as pack:
        pack.seek(at)
        pack.write(bytes([body[0] ^ 1]))
    found = scene.gateway.run("scrub", check=False)
    assert (found.returncode, "many/key-7" in found.stdout) == (8, True)
    assert httpx.get(f"{scene.gateway.endpoint}/many/key-7").status_code == 503
