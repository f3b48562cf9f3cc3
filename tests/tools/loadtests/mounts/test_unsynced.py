"""A crash takes back exactly what was not synced."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from sluice_s3.loadtests.mounts import Mount, MountFailed, mounted
from tests.support.waiting import eventually
from tests.tools.loadtests.mounts.conftest import Make


@pytest.fixture
def mount(share: Make) -> Mount:
    return share(tracked=True, cached=False)


def sync(path: Path) -> None:
    """A file's bytes or a directory's names."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def synced(path: Path, body: bytes) -> Path:
    """A file that survives."""
    path.write_bytes(body)
    sync(path)
    sync(path.parent)
    return path


def tree(where: Path) -> dict[str, bytes]:
    """All files below, with what is in them, and directories."""
    return {
        str(path.relative_to(where)): path.read_bytes() if path.is_file() else b"directory"
        for path in sorted(where.rglob("*"))
    }


def test_files(mount: Mount) -> None:
    where = mount.path
    synced(where / "both", b"safe")
    (where / "name").write_bytes(b"lost")
    sync(where)
    (where / "bytes").write_bytes(b"safe, but who finds it")
    sync(where / "bytes")
    (where / "neither").write_bytes(b"lost")
    assert mount.crash() > 0
    assert tree(where) == {"both": b"safe", "name": b""}
    assert mount.crash() == 0
    assert tree(where) == {"both": b"safe", "name": b""}


def test_after_a_cut_every_call_fails_until_it_is_mounted_again(mount: Mount) -> None:
    where = mount.path
    synced(where / "synced", b"safe")
    fd = os.open(where / "open", os.O_CREAT | os.O_WRONLY)
    assert mount.cut() > 0
    for call in (
        lambda: os.write(fd, b"late"),
        lambda: os.fsync(fd),
        lambda: (where / "late").write_bytes(b""),
        lambda: os.listdir(where),
        lambda: (where / "synced").read_bytes(),
        lambda: os.close(fd),
    ):
        with pytest.raises(OSError, match="error"):
            call()
    mount.restart()
    assert tree(where) == {"synced": b"safe"}


def test_what_was_there_before_it_was_mounted_survives(mount: Mount) -> None:
    (mount.backing / "old").write_bytes(b"from before")
    mount.crash()
    assert tree(mount.path) == {"old": b"from before"}


@pytest.mark.parametrize("then", ["sync", "crash", "failed sync", "failed sync and sync"])
def test_bytes_written_over_added_and_cut(mount: Mount, then: str) -> None:
    old = bytes(range(100))
    file = synced(mount.path / "file", old)
    with open(file, "r+b", buffering=0) as opened:
        os.pwrite(opened.fileno(), b"A" * 10, 5)
        os.pwrite(opened.fileno(), b"B" * 10, 10)
        os.pwrite(opened.fileno(), b"C" * 100, 95)
        os.ftruncate(opened.fileno(), 50)
        os.pwrite(opened.fileno(), b"D" * 10, 55)
        new = file.read_bytes()
        assert new == old[:5] + b"A" * 5 + b"B" * 10 + old[20:50] + bytes(5) + b"D" * 10
        if then.startswith("failed"):
            mount.fault("fsync", "EIO")
            with pytest.raises(OSError):
                os.fsync(opened.fileno())
        if then in ("sync", "failed sync and sync"):
            os.fsync(opened.fileno())
    assert file.read_bytes() == new
    mount.crash()
    expected = {"sync": new, "crash": old, "failed sync": old[:65], "failed sync and sync": old[:65]}
    assert file.read_bytes() == expected[then]


def test_appended_records_up_to_the_last_sync(mount: Mount) -> None:
    with open(mount.path / "pack", "xb", buffering=0) as pack:
        sync(mount.path)
        pack.write(b"one ")
        os.fdatasync(pack.fileno())
        pack.write(b"two ")
        os.fsync(pack.fileno())
        pack.write(b"three")
    mount.crash()
    assert (mount.path / "pack").read_bytes() == b"one two "


def test_what_a_failed_sync_was_about_is_lost_whatever_comes_later(mount: Mount) -> None:
    with open(mount.path / "pack", "xb", buffering=0) as pack:
        sync(mount.path)
        pack.write(b"one ")
        os.fsync(pack.fileno())
        mount.fault("fsync", "EIO")
        pack.write(b"two ")
        with pytest.raises(OSError):
            os.fsync(pack.fileno())
        pack.write(b"three")
        os.fsync(pack.fileno())
    assert (mount.path / "pack").read_bytes() == b"one two three"
    mount.crash()
    assert (mount.path / "pack").read_bytes() == b"one " + bytes(4) + b"three"


CHANGES: dict[str, tuple[Callable[[Path], object], dict[str, bytes]]] = {
    "unlink": (lambda at: (at / "a").unlink(), {"b": b"b", "d": b"directory", "d/f": b"f", "e": b"directory"}),
    "replace": (
        lambda at: (at / "a").rename(at / "b"),
        {"b": b"a", "d": b"directory", "d/f": b"f", "e": b"directory"},
    ),
    "rename": (
        lambda at: (at / "d").rename(at / "moved"),
        {"a": b"a", "b": b"b", "e": b"directory", "moved": b"directory", "moved/f": b"f"},
    ),
    "rmdir": (lambda at: (at / "e").rmdir(), {"a": b"a", "b": b"b", "d": b"directory", "d/f": b"f"}),
    "mkdir": (
        lambda at: (at / "made").mkdir(),
        {"a": b"a", "b": b"b", "d": b"directory", "d/f": b"f", "e": b"directory", "made": b"directory"},
    ),
    "link": (
        lambda at: os.link(at / "a", at / "linked"),
        {"a": b"a", "b": b"b", "d": b"directory", "d/f": b"f", "e": b"directory", "linked": b"a"},
    ),
}


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_names(mount: Mount, change: str, kept: bool) -> None:
    where = mount.path
    for directory in ("d", "e"):
        (where / directory).mkdir()
    for name in ("a", "b", "d/f"):
        synced(where / name, name[-1:].encode())
    before = tree(where)
    do, after = CHANGES[change]
    do(where)
    assert tree(where) == after
    if kept:
        sync(where)
    mount.crash()
    assert tree(where) == (after if kept else before)


def test_renamed_from_one_directory_to_another(mount: Mount) -> None:
    where = mount.path
    for name in ("from", "to"):
        (where / name).mkdir()
    sync(where)
    for name in ("kept", "lost"):
        synced(where / "from" / name, name.encode())
    (where / "from" / "kept").rename(where / "to" / "kept")
    sync(where / "to")
    (where / "from" / "lost").rename(where / "to" / "lost")
    mount.crash()
    assert tree(where) == {
        "from": b"directory",
        "from/lost": b"lost",
        "to": b"directory",
        "to/kept": b"kept",
    }


def test_names_in_a_directory_that_was_renamed(mount: Mount) -> None:
    (mount.path / "old").mkdir()
    sync(mount.path)
    (mount.path / "old" / "file").write_bytes(b"lost")
    (mount.path / "old").rename(mount.path / "new")
    sync(mount.path)
    mount.crash()
    assert tree(mount.path) == {"new": b"directory"}


def test_a_name_that_came_went_and_came(mount: Mount) -> None:
    file = synced(mount.path / "file", b"first")
    file.unlink()
    file.write_bytes(b"second")
    sync(file)
    (mount.path / "other").write_bytes(b"third")
    (mount.path / "other").rename(file)
    assert file.read_bytes() == b"third"
    mount.crash()
    assert tree(mount.path) == {"file": b"first"}


def test_unlinked_while_it_is_open(mount: Mount) -> None:
    for name in ("lost", "kept"):
        synced(mount.path / name, name.encode())
    fds = [os.open(mount.path / name, os.O_RDONLY) for name in ("lost", "kept")]
    (mount.path / "kept").unlink()
    sync(mount.path)
    (mount.path / "lost").unlink()
    assert os.pread(fds[0], 9, 0) == b"lost"
    mount.crash()
    assert tree(mount.path) == {"lost": b"lost"}
    for fd in fds:
        with pytest.raises(OSError, match="not connected"):
            os.pread(fd, 9, 0)
        with suppress(OSError):
            os.close(fd)


def test_nfs_keeps_what_is_closed(make: Make) -> None:
    mount = make(profile="efs-004", tracked=True)
    (mount.path / "closed").write_bytes(b"sent by close")
    fd = os.open(mount.path / "open", os.O_CREAT | os.O_WRONLY)
    sync(mount.path)
    os.write(fd, b"not sent")
    mount.crash()
    with suppress(OSError):
        os.close(fd)
    assert tree(mount.path) == {"closed": b"sent by close", "open": b""}


def test_nothing_is_left_behind(make: Make, tmp_path: Path) -> None:
    mount = make(tracked=True)
    synced(mount.path / "file", b"x").unlink()
    (mount.path / "other").touch()
    mount.crash()
    mount.stop()
    assert os.listdir(mount.backing) == ["file"]
    assert sorted(os.listdir(tmp_path)) == ["backing1", "mount1"]


def test_a_directory_whose_removal_is_synced_leaves_nothing_to_undo(mount: Mount) -> None:
    (mount.path / "d" / "inner").mkdir(parents=True)
    for name in ("d/one", "d/two", "d/inner/three"):
        (mount.path / name).touch()
    sync(mount.path)
    (mount.path / "d" / "one").rename(mount.path / "d" / "other")
    shutil.rmtree(mount.path / "d")
    sync(mount.path)
    assert mount.crash() == 0
    assert tree(mount.path) == {}


def test_what_is_written_during_a_sync_is_not_in_it(make: Make) -> None:
    mount = make(tracked=True, cached=False, ms={"sync": 500})
    with open(mount.path / "pack", "xb", buffering=0) as pack:
        sync(mount.path)
        pack.write(b"in it, ")
        before = mount.counts().get("fsync", 0)
        thread = threading.Thread(target=os.fsync, args=(pack.fileno(),))
        thread.start()
        eventually(lambda: mount.counts().get("fsync", 0) != before)
        time.sleep(0.1)
        pack.write(b"not in it")
        thread.join()
    mount.crash()
    assert (mount.path / "pack").read_bytes() == b"in it, "


def test_a_directory_that_is_a_file_system_cannot_be_tracked(make: Make) -> None:
    mount = make(tracked=True)
    (mount.path.parent / "again").mkdir()
    with pytest.raises(MountFailed, match="of its own"), mounted(mount.path, mount.path.parent / "again", tracked=True):
        pass


@pytest.mark.parametrize("seed", range(3))
def test_more_may_survive_than_was_asked_for(mount: Mount, seed: int) -> None:
    """Old or new, names in their order, added bytes from their beginning."""
    where = mount.path
    synced(where / "synced", b"safe")
    with open(where / "pack", "xb", buffering=0) as pack:
        sync(where)
        pack.write(b"safe, ")
        os.fsync(pack.fileno())
        pack.write(b"added")
    for number in range(10):
        (where / f"{number}").write_bytes(b"new")
    mount.crash(survives=0.5, seed=seed)
    found = tree(where)
    assert found.pop("synced") == b"safe"
    body = found.pop("pack")
    assert body.startswith(b"safe, ")
    assert b"safe, added".startswith(body)
    assert list(found) == [str(number) for number in range(5)]
    assert all(b"new".startswith(body) for body in found.values())


def test_a_cut_under_writers_loses_nothing_that_was_synced(make: Make) -> None:
    mount = make(tracked=True, ms={"sync": 2})
    kept: list[str] = []
    lock = threading.Lock()

    def work(thread: int) -> None:
        directory = os.open(mount.path, os.O_RDONLY)
        with suppress(OSError):
            for number in range(10_000):
                name = f"{thread}-{number}"
                with open(mount.path / name, "xb", buffering=0) as file:
                    file.write(name.encode())
                    os.fsync(file.fileno())
                os.fsync(directory)
                with lock:
                    kept.append(name)
        with suppress(OSError):
            os.close(directory)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(kept) >= 20)
    mount.crash()
    for thread in threads:
        thread.join(20)
    found = tree(mount.path)
    assert {name: found.get(name) for name in kept} == {name: name.encode() for name in kept}
