"""Plain files: a call of the mount fails at every step of PUT, GET, DELETE and Complete.

The right error, and the old object or the new one, whole: also when the mount did what it says that it did not. The key
takes the next change.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sluice_s3.loadtests.mounts import mounted
from tests.reliability.faults.test_every_step import AGAIN, ANSWERS, CUT, FAILED, FULL, HARMLESS, PART, Scene
from tests.reliability.faults.two import LARGE, SMALL, get, outcome, stores
from tests.support.environment import need_fuse, sized
from tests.support.gateway import client
from tests.support.waiting import eventually

BUCKET = "tree"
STAGED, PLACED, DIRECTORY = "/tree/.sluice/staged/*", "/tree/tree/*", "/tree/*"
GONE = (404, "NoSuchKey")
STEPS = [
    *itertools.product(("create", "write", "fsync", "flush"), (STAGED,)),
    ("rename", DIRECTORY),
    ("fsyncdir", DIRECTORY),
]
ACTS = sized(
    [(act, 1) for act in ("EIO", "ENOSPC", "EROFS", "EINTR", "short")],
    [(act, nth) for act in (*ANSWERS, *HARMLESS) for nth in (1, 2, 3)],
)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    need_fuse()
    root = tmp_path_factory.mktemp("tree-steps")
    for name in ("backing", "mount"):
        (root / name).mkdir()
    places = {"good": (root / "good", "local"), "tree": (root / "mount" / "tree", "local")}
    configured = stores(root, places, limit=10.0, trees=["tree"], SLUICE_TREE_SCAN_INTERVAL="0")
    with mounted(root / "backing", root / "mount", cached=False) as mount, configured as gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-east-1:tree"})
        yield Scene(s3, mount)


def put(s3: Any, key: str, body: bytes) -> Callable[[], tuple[int, str]]:
    """PutObject, to be called."""
    return lambda: outcome(s3.put_object, Bucket=BUCKET, Key=key, Body=body)


def complete(s3: Any, key: str, body: bytes) -> Callable[[], tuple[int, str]]:
    """CompleteMultipartUpload of `body` in two parts that are there already, to be called."""
    place = {"Bucket": BUCKET, "Key": key}
    place["UploadId"] = s3.create_multipart_upload(**place)["UploadId"]
    parts = [
        {"PartNumber": number, "ETag": s3.upload_part(**place, PartNumber=number, Body=some)["ETag"]}
        for number, some in ((1, body[: len(PART)]), (2, body[len(PART) :]))
    ]
    return lambda: outcome(s3.complete_multipart_upload, **place, MultipartUpload={"Parts": parts})


def whole(s3: Any, key: str, *bodies: bytes) -> bytes:
    """The object, once it can be read: one of these."""
    found: list[bytes] = []

    def readable() -> bool:
        if outcome(s3.get_object, Bucket=BUCKET, Key=key) != (200, ""):
            return False
        found.append(get(s3, key, BUCKET))
        return True

    eventually(readable, f"{key} is readable")
    assert found[-1] in bodies, key
    return found[-1]


def takes_the_next(s3: Any, key: str) -> None:
    """The key is free again, and what comes next is as good as any."""
    again = put(s3, key, SMALL)
    eventually(lambda: again() == (200, ""), f"{key} takes the next change")
    assert whole(s3, key, SMALL) == SMALL


@pytest.mark.parametrize("after", [False, True], ids=["refused", "done"])
@pytest.mark.parametrize(("call", "path"), STEPS, ids=lambda value: value.strip("/*"))
@pytest.mark.parametrize("operation", [put, complete])
def test_changes(scene: Scene, operation: Callable[..., Any], call: str, path: str, after: bool) -> None:
    s3, mount = scene
    struck = 0
    for act, nth in ACTS:
        if act == "short" and (call != "write" or after):
            continue
        key = f"{operation.__name__}-{call}-{act}-{nth}-{after}"
        body = PART + LARGE if operation is complete else LARGE
        old, new = b"old " + body, b"new " + body
        assert put(s3, key, old)() == (200, "")
        change = operation(s3, key, new)
        number = mount.fault(call, act, path, nth=nth, after=after)
        answer = change()
        hit = mount.struck(number)
        mount.clear()
        struck += hit
        if answer == (200, ""):
            # copy_file_range(2) that fails is tried as reads and writes
            again = act in HARMLESS or (call, act) == AGAIN or (operation is complete and call == "write")
            assert not hit or again or path == DIRECTORY, key
            assert whole(s3, key, new) == new
        else:
            assert hit, key
            expected = ANSWERS.get(act, FAILED)
            assert answer in ((expected, FAILED) if path == DIRECTORY else (expected,)), key
            assert path == DIRECTORY or whole(s3, key, old) == old
            whole(s3, key, old, new)
        takes_the_next(s3, key)
    assert struck >= 3


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_reads(scene: Scene, body: bytes) -> None:
    s3, mount = scene
    for call, act, nth in itertools.product(("open", "read"), ("EIO", "ESTALE", "ENOTCONN", *HARMLESS), (1, 2)):
        if call == "open" and act == "short":
            continue
        key = f"read-{call}-{act}-{nth}"
        assert put(s3, key, body)() == (200, "")
        mount.fault(call, act, PLACED, nth=nth)
        assert outcome(s3.get_object, Bucket=BUCKET, Key=key) in ((200, ""), FAILED, CUT), key
        mount.clear()
        assert whole(s3, key, body) == body


@pytest.mark.parametrize("after", [False, True], ids=["refused", "done"])
@pytest.mark.parametrize("call", ["unlink", "fsyncdir"])
def test_deletes(scene: Scene, call: str, after: bool) -> None:
    """The object is there, whole, or it is gone; and then it can be deleted, and put again."""
    s3, mount = scene
    for act in ("EIO", "EROFS", "ESTALE", "EINTR"):
        key = f"delete-{call}-{act}-{after}"
        assert put(s3, key, LARGE)() == (200, "")
        number = mount.fault(call, act, DIRECTORY, after=after)
        answer = outcome(s3.delete_object, Bucket=BUCKET, Key=key)
        hit = mount.struck(number)
        mount.clear()
        assert answer in ((204, ""), FAILED), key
        assert hit or answer == (204, ""), key
        if answer == (204, ""):
            assert outcome(s3.get_object, Bucket=BUCKET, Key=key) == GONE
        eventually(lambda key=key: outcome(s3.get_object, Bucket=BUCKET, Key=key) in ((200, ""), GONE), key)
        eventually(lambda key=key: outcome(s3.delete_object, Bucket=BUCKET, Key=key) == (204, ""), key)
        assert outcome(s3.get_object, Bucket=BUCKET, Key=key) == GONE
        takes_the_next(s3, key)


@pytest.mark.parametrize("act", ["ENOSPC", "EDQUOT"])
def test_full(scene: Scene, act: str) -> None:
    """Nothing can be made or written: PUT and Complete say so, all else goes on, DELETE too."""
    s3, mount = scene
    for number in range(2):
        assert put(s3, f"full-{act}-{number}", LARGE)() == (200, "")
    ending = complete(s3, f"full-{act}-0", PART + LARGE)
    mount.fault("space", act, "/tree/*", times=None)
    assert put(s3, f"full-{act}-0", SMALL)() == FULL
    assert ending() == FULL
    assert whole(s3, f"full-{act}-0", LARGE) == LARGE
    assert outcome(s3.delete_object, Bucket=BUCKET, Key=f"full-{act}-1") == (204, "")
    assert outcome(s3.get_object, Bucket=BUCKET, Key=f"full-{act}-1")[0] == 404
    mount.clear()
    eventually(lambda: ending() == (200, ""), "the upload can be completed")
    assert whole(s3, f"full-{act}-0", PART + LARGE) == PART + LARGE
