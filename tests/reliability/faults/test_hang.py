"""A mount that hangs: its store is out of service, everything else goes on, and it comes back by itself."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from sluice_s3.loadtests.mounts import Mount, mounted
from tests.reliability.faults.two import BODIES, LARGE, SMALL, filled, get, metric, outcome, put, two
from tests.support.environment import need_fuse, sized
from tests.support.gateway import Gateway
from tests.support.waiting import eventually

AT_ONCE = 16
"""More than the store has threads."""
DOWN = (503, "ServiceUnavailable")


class Scene(NamedTuple):
    """A gateway whose store `odd` is on a mount."""

    gateway: Gateway
    mount: Mount
    s3: Any


@pytest.fixture(scope="module", params=["fuse", "local"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    need_fuse()
    root = tmp_path_factory.mktemp("hang")
    for name in ("backing", "odd"):
        (root / name).mkdir()
    gateway = two(root, root / "odd", driver=request.param)
    with mounted(root / "backing", root / "odd", cached=False) as mount, gateway:
        yield Scene(gateway, mount, filled(gateway, max_pool_connections=2 * AT_ONCE))


def up(scene: Scene) -> bool:
    """Both sizes can be put and read."""
    return all(
        outcome(scene.s3.put_object, Bucket="odd", Key=f"new-{size}", Body=body)[0] == 200
        and outcome(scene.s3.get_object, Bucket="odd", Key=f"new-{size}")[0] == 200
        for size, body in BODIES.items()
    )


def healthy(scene: Scene) -> None:
    """The other store and health answer, whatever the first one does."""
    for path in ("/-/health/live", "/-/health/ready"):
        assert httpx.get(scene.gateway.endpoint + path).status_code == 200
    for size, body in BODIES.items():
        scene.s3.put_object(Bucket="good", Key="k", Body=body)
        assert get(scene.s3, "k", "good") == body
        assert get(scene.s3, f"old-{size}", "good") == body
        scene.s3.delete_object(Bucket="good", Key="k")


def test_everything_hangs(scene: Scene) -> None:
    """Twice as many requests as threads: all are answered while the mount hangs, and so is everybody else."""
    before = scene.s3.list_objects_v2(Bucket="odd")["KeyCount"]
    hang = scene.mount.fault("*", "hang", times=None)
    with ThreadPoolExecutor(3 * AT_ONCE) as clients:
        asked = []
        for number in range(AT_ONCE):
            for size, body in BODIES.items():
                asked.append(
                    clients.submit(outcome, scene.s3.put_object, Bucket="odd", Key=f"{size}-{number}", Body=body)
                )
            asked.append(clients.submit(outcome, scene.s3.get_object, Bucket="odd", Key="old-large"))
        for _ in range(20):
            healthy(scene)
        assert [one.result() for one in asked] == [DOWN] * len(asked)
    assert scene.mount.waiting() > 0
    assert outcome(scene.s3.get_object, Bucket="odd", Key="old-large") == DOWN
    # out of service: said at once, by what asks no disk
    for size in BODIES:
        assert outcome(scene.s3.get_object, Bucket="odd", Key=f"old-{size}") == DOWN
        assert outcome(scene.s3.head_object, Bucket="odd", Key=f"old-{size}")[0] == 200
    assert scene.s3.list_objects_v2(Bucket="odd")["KeyCount"] == before
    eventually(lambda: metric(scene.gateway, "down_processes", "odd") >= 1)
    assert metric(scene.gateway, "stuck_calls", "odd") >= 1
    assert (metric(scene.gateway, "up", "odd"), metric(scene.gateway, "up", "good")) == (0, 1)
    assert (metric(scene.gateway, "down_processes", "good"), metric(scene.gateway, "stuck_calls", "good")) == (0, 0)
    healthy(scene)
    scene.mount.clear(hang)
    eventually(lambda: up(scene), "recovery")
    for size, body in BODIES.items():
        assert get(scene.s3, f"old-{size}") == body
        for number in range(AT_ONCE):  # what was refused never came
            assert outcome(scene.s3.head_object, Bucket="odd", Key=f"{size}-{number}")[0] == 404


@pytest.mark.parametrize("call", sized(["fsync"], ["create", "write", "fsync", "fsyncdir", "flush", "open", "read"]))
def test_one_kind_of_call_hangs(scene: Scene, call: str) -> None:
    """Whatever it is that hangs: 503, and afterwards the old object, and then the new one."""
    for size, body in BODIES.items():
        put(scene.s3, f"{call}-{size}", b"old " + body)
    hang = scene.mount.fault(call, "hang", times=None)
    answers = {
        size: outcome(scene.s3.put_object, Bucket="odd", Key=f"{call}-{size}", Body=b"new " + body)
        for size, body in BODIES.items()
    }
    healthy(scene)
    scene.mount.clear(hang)
    eventually(lambda: up(scene), "recovery")
    for size, body in BODIES.items():
        assert answers[size] in ((200, ""), DOWN)
        assert call in ("flush", "open", "read") or answers["large"] == DOWN
        new = answers[size] == (200, "")
        assert get(scene.s3, f"{call}-{size}") == (b"new " if new else b"old ") + body


def test_it_hangs_in_the_middle_of_bodies(scene: Scene) -> None:
    """Readers are cut off, more of them than there are threads; those of the other store read on."""
    body = b"0123456789abcdef" * 500_000
    for bucket in ("good", "odd"):
        put(scene.s3, "body", body, bucket)
    hang = scene.mount.fault("read", "hang", nth=6, times=None)
    with ThreadPoolExecutor(2 * AT_ONCE) as clients:
        asked = [clients.submit(outcome, scene.s3.get_object, Bucket="odd", Key="body") for _ in range(AT_ONCE)]
        for _ in range(20):
            assert get(scene.s3, "body", "good") == body
        assert {one.result() for one in asked} <= {DOWN, (0, "cut")}
    scene.mount.clear(hang)
    eventually(lambda: up(scene), "recovery")
    assert get(scene.s3, "body") == body


def test_a_delete_needs_no_disk(scene: Scene) -> None:
    for size, body in BODIES.items():
        put(scene.s3, f"gone-{size}", body)
    hang = scene.mount.fault("*", "hang", times=None)
    eventually(lambda: outcome(scene.s3.put_object, Bucket="odd", Key="k", Body=SMALL) == DOWN)
    for size in BODIES:
        assert outcome(scene.s3.delete_object, Bucket="odd", Key=f"gone-{size}")[0] == 204
        assert outcome(scene.s3.get_object, Bucket="odd", Key=f"gone-{size}")[0] == 404
    scene.mount.clear(hang)
    eventually(lambda: up(scene), "recovery")


def test_a_rolling_restart_and_a_stop_while_it_hangs(tmp_path: Path) -> None:
    need_fuse()
    for name in ("backing", "odd"):
        (tmp_path / name).mkdir()
    with mounted(tmp_path / "backing", tmp_path / "odd", cached=False) as mount:
        gateway = two(tmp_path, tmp_path / "odd")

        def log() -> str:
            return (tmp_path / "gateway.log").read_text()

        with gateway:
            s3 = filled(gateway)
            before = set(gateway.children())
            old = len(before)
            mount.fault("*", "hang", times=None)
            eventually(lambda: outcome(s3.put_object, Bucket="odd", Key="k", Body=LARGE) == DOWN)
            gateway.hup()
            # the old processes may stay: nothing ends a thread that hangs in the kernel
            eventually(lambda: len(set(gateway.children()) - before) == old and "restart done" in log(), "the restart")
            assert get(s3, "old-large", "good") == LARGE
            assert outcome(s3.get_object, Bucket="odd", Key="old-large") == DOWN
            assert gateway.stop(120) == 0
            mount.clear()
        with gateway:
            assert get(s3, "old-large") == LARGE
            assert get(s3, "old-small") == SMALL
