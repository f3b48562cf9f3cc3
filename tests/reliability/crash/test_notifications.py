"""Messages of changes over crashes: each is told at least once, those of a key in their order."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.crash.ledger import UNKNOWN
from tests.reliability.crash.scene import BUCKET, Scene
from tests.support.environment import sized
from tests.support.gateway import client
from tests.support.hook import Hook
from tests.support.places import placed

pytestmark = pytest.mark.crash

KILLS = sized(ci=3, soak=50)
KEYS = 4
ARN = "arn:aws:sqs:us-east-1:000000000000:hook"
EVENTS = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


@pytest.fixture(params=["here", "postgres"])
def scene(request: pytest.FixtureRequest, tmp_path: Path, hook: Hook) -> Iterator[Scene]:
    targets = json.dumps({"hook": {"url": hook.url}})
    with placed(tmp_path, request.param) as place, Scene(tmp_path, place=place, SLUICE_NOTIFY_TARGETS=targets) as made:
        rule = {"QueueArn": ARN, "Events": EVENTS}
        configuration = {"QueueConfigurations": [rule]}
        made.s3.put_bucket_notification_configuration(Bucket=BUCKET, NotificationConfiguration=configuration)
        yield made


def first_told(hook: Hook, key: str) -> list[tuple[str, int]]:
    """Sequencer and size of each change of a key, in the order in which they were told first."""
    found: dict[str, int] = {}
    for record in hook.of(BUCKET):
        one = record["s3"]["object"]
        if one["key"] == key:
            found.setdefault(one["sequencer"], one.get("size", 0))
    return list(found.items())


def test_sent_but_not_forgotten(scene: Scene, hook: Hook) -> None:
    workers = set(scene.gateway.children())
    scene.arm("notify.sent")
    scene.s3.put_object(Bucket=BUCKET, Key="k", Body=b"x")
    scene.wait_until(lambda: not workers <= set(scene.gateway.children()), "a worker came to it")
    scene.disarm()
    scene.wait_until(lambda: len(hook.of(BUCKET)) >= 2, "it is told again")
    assert [size for _, size in first_told(hook, "k")] == [1]


def test_committed_but_not_sent(scene: Scene, hook: Hook) -> None:
    hook.status = 503
    scene.s3.put_object(Bucket=BUCKET, Key="k", Body=b"12")
    scene.gateway.kill()
    assert hook.of(BUCKET) == []
    hook.status = 200
    scene.start()
    scene.wait_until(lambda: [size for _, size in first_told(hook, "k")] == [2], "it is told")


def test_killed_under_load(scene: Scene, hook: Hook) -> None:
    done: dict[str, list[int]] = {f"k{number}": [] for number in range(KEYS)}
    """The sizes that were acknowledged, by key."""
    stopping = threading.Event()

    def write(key: str, sizes: list[int]) -> None:
        s3: Any = client(scene.gateway.endpoint)
        size = 0
        while not stopping.is_set():
            size += 1
            try:
                s3.put_object(Bucket=BUCKET, Key=key, Body=b"x" * size)
            except UNKNOWN:
                time.sleep(0.1)
            else:
                sizes.append(size)

    threads = [threading.Thread(target=write, args=one) for one in done.items()]
    for thread in threads:
        thread.start()
    try:
        for _ in range(KILLS):
            time.sleep(1.5)
            scene.start()
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    for key, sizes in done.items():
        assert sizes

        def all_told(key: str = key, sizes: list[int] = sizes) -> bool:
            return set(sizes) <= {size for _, size in first_told(hook, key)}

        scene.wait_until(all_told, f"all of {key} is told")
        told = first_told(hook, key)
        assert told == sorted(told)
        assert [size for _, size in told] == sorted(size for _, size in told)
