"""A call of the mount fails at every step of PUT, GET, DELETE and Complete: the right error, and old or new, whole.

One gateway, three stores on one mount that fails where it is told to, each with the driver of its name. Nothing is
compacted: a fault is to strike the request and not that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from sluice_s3.loadtests.mounts import Mount, mounted
from tests.reliability.faults.two import LARGE, SMALL, get, outcome, stores
from tests.support.environment import need_fuse, sized
from tests.support.gateway import client

PART = b"p" * (5 << 20)
FULL, FAILED = (507, "InsufficientStorage"), (503, "ServiceUnavailable")
ANSWERS = {"ENOSPC": FULL, "EDQUOT": FULL, "EROFS": FAILED, "EIO": FAILED, "ESTALE": FAILED}
HARMLESS = ("EINTR", "short")
"""The call is made again, or for the rest."""
AGAIN = ("create", "ESTALE")
"""Linux itself asks again."""
FILE = "/data/??/" + "?" * 16
PACK = "/data/??/*.pack"
DIRECTORY = "/data/??"
CUT = (0, "cut")
STORES = ("fuse", "local", "efs")
ATTEMPTS = 5
"""Writes until the fault strikes one of them and not a job beside it."""


class Scene(NamedTuple):
    """A client and the mount below its stores."""

    s3: Any
    mount: Mount


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    need_fuse()
    root = tmp_path_factory.mktemp("steps")
    for name in ("backing", "mount"):
        (root / name).mkdir()
    made = {name: (root / "mount" / name, name) for name in STORES}
    stores_of = {"good": (root / "good", "local"), **made}
    configured = stores(root, stores_of, limit=5.0, SLUICE_COMPACTION_RATE="0")
    with mounted(root / "backing", root / "mount", cached=False) as mount, configured as gateway:
        s3 = client(gateway.endpoint)
        for name in made:
            s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": f"us-east-1:{name}"})
        yield Scene(s3, mount)


def new_pack(scene: Scene, store: str) -> None:
    """The next small body begins a pack: a write to the last one failed."""
    number = scene.mount.fault("write", "EIO", f"/{store}{PACK}")
    while not scene.mount.struck(number):
        outcome(scene.s3.put_object, Bucket=store, Key="sacrificed", Body=SMALL)
    scene.mount.clear()


WRITES = [
    *itertools.product(("create", "write", "fsync", "flush"), (FILE,), (LARGE,)),
    ("fsyncdir", DIRECTORY, LARGE),
    *itertools.product(("create", "write", "fsync"), (PACK,), (SMALL,)),
    ("fsyncdir", DIRECTORY, SMALL),
]
ACTS = sized(
    [(act, 1) for act in (*ANSWERS, *HARMLESS)] + [("EIO", 2), ("short", 2)],
    [(act, nth) for act in (*ANSWERS, *HARMLESS) for nth in (1, 2, 3)],
)


class Struck(NamedTuple):
    """A write with a fault in its way: whether it was struck and should have failed, its answer, and its upload."""

    hit: bool
    failed: bool
    answer: tuple[int, str]
    upload: dict[str, str]


def write(scene: Scene, store: str, fault: tuple[str, str, int, str], key: str, new: bytes, multipart: bool) -> Struck:
    """PUT, or a part, with the fault set before it."""
    call, act, nth, path = fault
    place = {"Bucket": store, "Key": key}
    number = scene.mount.fault(call, act, f"/{store}{path}", nth=nth)
    if multipart:
        place["UploadId"] = scene.s3.create_multipart_upload(**place)["UploadId"]
        answer = outcome(scene.s3.upload_part, **place, PartNumber=1, Body=new)
    else:
        answer = outcome(scene.s3.put_object, **place, Body=new)
    hit = scene.mount.struck(number)
    scene.mount.clear()
    # a close that fails is never done again, whatever it says
    failed = hit and (call, act) != AGAIN and (act not in HARMLESS or call == "flush")
    return Struck(hit, failed, answer, place)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("call", "path", "body"), WRITES, ids=lambda value: value if isinstance(value, str) else "")
def test_writes(scene: Scene, store: str, call: str, path: str, body: bytes) -> None:
    """PUT over an old object, and a part: an error leaves the old one, and the next PUT is as good as any."""
    s3 = scene.s3
    struck = 0
    for (act, nth), multipart in itertools.product(ACTS, (False, True) if body is LARGE else (False,)):
        if act == "short" and call != "write":
            continue
        key = f"{call}-{act}-{nth}-{multipart}"
        old, new = b"old " + body, b"new " + body
        for _ in range(ATTEMPTS):
            s3.put_object(Bucket=store, Key=key, Body=old)
            if body is SMALL and call in ("create", "fsyncdir"):
                new_pack(scene, store)
            hit, failed, answer, place = write(scene, store, (call, act, nth, path), key, new, multipart)
            if not failed or answer != (200, "") or (path is not DIRECTORY and call != "flush"):
                break  # else it struck the garbage job, which closes files and syncs directories too
        struck += hit
        assert answer == (ANSWERS.get(act, FAILED) if failed else (200, "")), key
        if multipart and not failed:
            assert get(s3, key, store) == old
            parts = [{"PartNumber": 1, "ETag": s3.list_parts(**place)["Parts"][0]["ETag"]}]
            s3.complete_multipart_upload(**place, MultipartUpload={"Parts": parts})
        assert get(s3, key, store) == (old if failed else new), key
        if failed:
            s3.put_object(Bucket=store, Key=key, Body=new)
            assert get(s3, key, store) == new
    assert struck >= len(ANSWERS)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_reads(scene: Scene, store: str, body: bytes) -> None:
    """GET: the whole object, or 503, or a connection cut in the middle; the object is there again afterwards."""
    s3, mount = scene
    for call, act, nth in itertools.product(("open", "read"), ("EIO", "ESTALE", "ENOTCONN", *HARMLESS), (1, 2)):
        if call == "open" and act == "short":
            continue
        key = f"read-{call}-{act}-{nth}"
        s3.put_object(Bucket=store, Key=key, Body=body)
        mount.fault(call, act, f"/{store}/data/*", nth=nth)
        answer = outcome(s3.get_object, Bucket=store, Key=key)
        assert answer in ((200, ""), FAILED, CUT), key
        mount.clear()
        assert get(s3, key, store) == body, key


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("act", ["EIO", "EROFS", "ENOSPC", "ESTALE"])
def test_deletes(scene: Scene, store: str, act: str) -> None:
    """DELETE and Complete ask nothing of the mount: with every change refused, they are answered as ever."""
    s3, mount = scene
    bodies: dict[str, bytes] = {"small": SMALL, "large": LARGE}
    for name, body in bodies.items():
        s3.put_object(Bucket=store, Key=f"delete-{name}", Body=body)
    place = {"Bucket": store, "Key": "complete"}
    place["UploadId"] = s3.create_multipart_upload(**place)["UploadId"]
    parts = [
        {"PartNumber": number, "ETag": s3.upload_part(**place, PartNumber=number, Body=body)["ETag"]}
        for number, body in ((1, PART), (2, SMALL))
    ]
    mount.fault("change", act, f"/{store}/*", times=None)
    for name in bodies:
        assert outcome(s3.delete_object, Bucket=store, Key=f"delete-{name}")[0] == 204
        assert outcome(s3.get_object, Bucket=store, Key=f"delete-{name}")[0] == 404
    assert outcome(s3.complete_multipart_upload, **place, MultipartUpload={"Parts": parts})[0] == 200
    assert get(s3, "complete", store) == PART + SMALL
    for body in bodies.values():
        assert outcome(s3.put_object, Bucket=store, Key="refused", Body=body) == ANSWERS[act]
        assert outcome(s3.head_object, Bucket=store, Key="refused")[0] == 404
    mount.clear()
    for name, body in bodies.items():
        s3.put_object(Bucket=store, Key=f"delete-{name}", Body=body)
        assert get(s3, f"delete-{name}", store) == body
