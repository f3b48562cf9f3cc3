"""What others do to plain files on a local disk is seen without a scan, and without anybody reading them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.storage_drivers.mountinfo import mount_of
from tests.integration.functional.test_tree import keys, md5, plain
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Gateway]:
    if mount_of(tmp_path).driver != "local":
        pytest.skip("only a local mount tells")
    with plain(tmp_path, every=3600) as running:
        yield running


def test_what_others_do_is_listed(tree: Gateway) -> None:
    s3: Any = client(tree.endpoint)
    s3.create_bucket(Bucket="photos")
    s3.put_object(Bucket="photos", Key="mine/a", Body=b"mine")
    bucket = tree.store / "photos"
    # the first is seen when all is watched, whenever that is: later ones prove that it is watched
    for name in ("first", "new/in/a/directory", "mine/b"):
        (bucket / name).parent.mkdir(parents=True, exist_ok=True)
        (bucket / name).write_bytes(name.encode())
        if name == "first":
            eventually(lambda: touched(bucket / "first") and "first" in keys(s3, "photos"))
    eventually(lambda: keys(s3, "photos") == ["first", "mine/a", "mine/b", "new/in/a/directory"])
    (bucket / "first").unlink()
    (bucket / "mine/b").rename(bucket / "mine/c")
    (bucket / "mine/a").write_bytes(b"theirs now")
    eventually(lambda: keys(s3, "photos") == ["mine/a", "mine/c", "new/in/a/directory"])
    eventually(lambda: etags(s3)["mine/a"] == md5(b"theirs now"))
    (bucket / "new").rename(tree.store / "elsewhere")
    eventually(lambda: keys(s3, "photos") == ["mine/a", "mine/c"])
    s3.put_object(Bucket="photos", Key="mine/a", Body=b"mine again")
    time.sleep(1)
    assert etags(s3)["mine/a"] == md5(b"mine again")


def touched(path: Path) -> bool:
    """Tell of a file again, in case that nobody listened yet."""
    os.utime(path, (1, 1))
    return True


def etags(s3: Any) -> dict[str, str]:
    return {entry["Key"]: entry["ETag"] for entry in s3.list_objects_v2(Bucket="photos").get("Contents", [])}
