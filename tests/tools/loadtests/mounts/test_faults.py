"""Every fault, by plain calls on the mount."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice_s3.loadtests.mounts import Fault, Mount, MountFailed, Refused, mounted
from sluice_s3.loadtests.mounts.mount import ROOT
from tests.support.waiting import eventually
from tests.tools.loadtests.mounts.conftest import Make

libc = ctypes.CDLL(None, use_errno=True)
NAMES = ("EIO", "ENOSPC", "EDQUOT", "ESTALE", "EROFS")


def failed(call: Callable[[], object]) -> str:
    """The name of the errno that it raised, or an empty string."""
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return ""


@pytest.fixture
def mount(share: Make) -> Mount:
    return share(cached=False)


@pytest.mark.parametrize("name", NAMES)
def test_an_error_strikes_the_nth_call_that_fits(mount: Mount, name: str) -> None:
    with open(mount.path / "a.pack", "xb", buffering=0) as pack, open(mount.path / "b", "xb", buffering=0) as other:
        number = mount.fault("write", name, "*.pack", nth=2, times=2)
        for _ in range(5):
            assert failed(lambda: other.write(b"fine")) == ""
        found = [failed(lambda: pack.write(b"1")) for _ in range(5)]
        assert found == ["", name, name, "", ""]
        assert mount.struck(number) == 2
        assert (mount.path / "a.pack").read_bytes() == b"111"


def test_each_call_is_slower(share: Make) -> None:
    where = share(slower=3.0, ms={"create": 50.0}).path
    started = time.perf_counter()
    (where / "file").touch()
    assert time.perf_counter() - started > 0.149


@pytest.mark.parametrize("name", NAMES)
def test_every_call_can_fail(mount: Mount, name: str) -> None:
    where = mount.path
    (where / "directory").mkdir()
    with open(where / "file", "x+b", buffering=0) as file:
        file.write(b"body")
        opened = os.open(where / "directory", os.O_RDONLY)
        calls: dict[str, Callable[[], object]] = {
            "getattr": lambda: os.stat(where / "unseen"),
            "readdir": lambda: os.listdir(where),
            "statfs": lambda: os.statvfs(where),
            "mkdir": lambda: os.mkdir(where / "made"),
            "rename": lambda: os.rename(where / "file", where / "renamed"),
            "link": lambda: os.link(where / "file", where / "linked"),
            "symlink": lambda: os.symlink("file", where / "symbolic"),
            "unlink": lambda: os.unlink(where / "file"),
            "rmdir": lambda: os.rmdir(where / "directory"),
            "chmod": lambda: os.chmod(where / "file", 0o600),
            "chown": lambda: os.chown(where / "file", os.getuid(), os.getgid()),
            "utimens": lambda: os.utime(where / "file", (1, 1)),
            "truncate": lambda: os.truncate(where / "file", 2),
            "create": lambda: os.open(where / "created", os.O_CREAT | os.O_EXCL | os.O_WRONLY),
            "open": lambda: os.open(where / "file", os.O_RDONLY),
            "read": lambda: os.pread(file.fileno(), 4, 0),
            "write": lambda: os.pwrite(file.fileno(), b"x", 0),
            "fsync": lambda: os.fsync(file.fileno()),
            "fsyncdir": lambda: os.fsync(opened),
            "flush": lambda: os.close(os.dup(file.fileno())),
            "setxattr": lambda: os.setxattr(where / "file", "user.a", b"b"),
            "listxattr": lambda: os.listxattr(where / "file"),
            "removexattr": lambda: os.removexattr(where / "file", "user.a"),
            "fallocate": lambda: os.posix_fallocate(file.fileno(), 0, 10),
        }
        for call, do in calls.items():
            # Linux itself asks again after ESTALE
            number = mount.fault(call, name, times=2 if name == "ESTALE" else 1)
            assert failed(do) == name, call
            assert mount.struck(number) >= 1
            mount.clear()
        os.close(opened)
        assert (where / "file").read_bytes() == b"body"


def test_interrupted(mount: Mount) -> None:
    with open(mount.path / "file", "xb", buffering=0) as file:
        mount.fault("write,fsync", "EINTR", times=2)
        for call in (lambda: libc.write(file.fileno(), b"x", 1), lambda: libc.fsync(file.fileno())):
            assert call() == -1
            assert ctypes.get_errno() == errno.EINTR
        number = mount.fault("write", "EINTR", times=2)
        file.write(b"Python tries again")
        assert mount.struck(number) == 2


def test_short(mount: Mount) -> None:
    with open(mount.path / "file", "x+b", buffering=0) as file:
        mount.fault("write", "short", part=0.25)
        assert file.write(b"x" * 4000) == 1000
        assert file.write(b"y" * 4000) == 4000
        mount.fault("read", "short", nth=2, part=0.5)
        assert [len(os.pread(file.fileno(), 5000, 0)) for _ in range(3)] == [5000, 2500, 5000]


def test_close_fails_once(mount: Mount) -> None:
    mount.fault("close", "EIO")
    fds = [os.open(mount.path / name, os.O_CREAT | os.O_WRONLY) for name in "ab"]
    assert [failed(lambda fd=fd: os.close(fd)) for fd in fds] == ["EIO", ""]


def test_sync_fails_once(mount: Mount) -> None:
    with open(mount.path / "file", "xb", buffering=0) as file:
        mount.fault("sync", "EIO")
        file.write(b"x")
        assert [failed(lambda: os.fsync(file.fileno())) for _ in range(2)] == ["EIO", ""]


def test_full_and_read_only_and_back(mount: Mount) -> None:
    (mount.path / "was").write_bytes(b"was")
    full = mount.fault("space", "ENOSPC", times=None)
    assert failed(lambda: (mount.path / "new").write_bytes(b"new")) == "ENOSPC"
    assert failed(lambda: (mount.path / "new").mkdir()) == "ENOSPC"
    (mount.path / "was").unlink()
    mount.clear(full)
    mount.fault("change", "EROFS", times=None)
    assert failed(lambda: (mount.path / "new").write_bytes(b"new")) == "EROFS"
    mount.clear()
    assert (mount.path / "new").write_bytes(b"new") == 3
    assert (mount.path / "new").read_bytes() == b"new"


def test_done_and_then_failed(mount: Mount) -> None:
    (mount.path / "old").touch()
    mount.fault("rename,create", "EIO", times=2, after=True)
    assert failed(lambda: (mount.path / "old").rename(mount.path / "new")) == "EIO"
    assert failed(lambda: (mount.path / "made").touch()) == "EIO"
    assert sorted(os.listdir(mount.path)) == ["made", "new"]


def test_late(mount: Mount) -> None:
    (mount.path / "file").touch()
    mount.fault("unlink", "late", seconds=0.3)
    started = time.monotonic()
    (mount.path / "file").unlink()
    assert time.monotonic() - started >= 0.3


def test_hangs_until_released(mount: Mount) -> None:
    mount.fault("create", "hang", "/stuck*", times=None)
    done: list[str] = []

    def touch(name: str) -> None:
        (mount.path / name).touch()
        done.append(name)

    # while a name is made in a directory, Linux lets nobody else list it or make another there
    threads = [threading.Thread(target=touch, args=(f"stuck{number}",), daemon=True) for number in range(2)]
    threads[0].start()
    eventually(lambda: mount.waiting() == 1)
    assert os.listdir(mount.backing) == done == []
    mount.release()
    eventually(lambda: done == ["stuck0"])
    threads[1].start()
    eventually(lambda: mount.waiting() == 1)
    mount.clear()
    for thread in threads:
        thread.join(20)
    assert sorted(os.listdir(mount.path)) == ["stuck0", "stuck1"]


def test_what_hangs_fails_when_the_mount_ends(tmp_path: Path, make: Make) -> None:
    mount = make()
    mount.fault("mkdir", "hang", times=None)
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(failed(lambda: (mount.path / "stuck").mkdir())))
    thread.start()
    eventually(lambda: mount.waiting() == 1)
    mount.stop()
    thread.join(20)
    assert found
    assert not os.path.ismount(mount.path)


def test_ends_with_who_is_killed_while_it_hangs_there(make: Make, tmp_path: Path) -> None:
    (tmp_path / "backing").mkdir()
    (tmp_path / "where").mkdir()
    script = f"""
import os, pathlib
from sluice_s3.loadtests.mounts import mounted
with mounted(pathlib.Path({str(tmp_path / "backing")!r}), pathlib.Path({str(tmp_path / "where")!r})) as mount:
    mount.fault("mkdir", "hang")
    print("ready", flush=True)
    (mount.path / "stuck").mkdir()
"""
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.kill()
    process.communicate(timeout=20)
    eventually(lambda: not os.path.ismount(tmp_path / "where"))


def test_vanished_and_back(mount: Mount) -> None:
    (mount.path / "file").write_bytes(b"here")
    mount.stop()
    assert os.listdir(mount.path) == []
    mount.start()
    assert (mount.path / "file").read_bytes() == b"here"


def test_faults_from_the_beginning(make: Make) -> None:
    mount = make(faults=[Fault("mkdir", "EDQUOT")])
    assert failed(lambda: (mount.path / "a").mkdir()) == "EDQUOT"
    (mount.path / "a").mkdir()


def test_counts(mount: Mount) -> None:
    before = mount.counts().get("fsync", 0)
    with open(mount.path / "file", "xb") as file:
        for _ in range(3):
            os.fsync(file.fileno())
    assert mount.counts()["fsync"] - before == 3


def test_refusals(make: Make, tmp_path: Path) -> None:
    for wrong in (("nothing", "EIO"), ("write", "ENOTHING"), ("write", "EIO", "*", 0)):
        with pytest.raises(ValueError):
            Fault(*wrong)  # type: ignore[arg-type]
    mount = make()
    with pytest.raises(Refused, match="track"):
        mount.crash()
    (tmp_path / "where").mkdir()
    with pytest.raises(ValueError, match="profile"), mounted(tmp_path, tmp_path / "where", profile="fast"):
        pass
    with pytest.raises(ValueError, match="personality"), mounted(tmp_path, tmp_path / "where", personality="odd"):
        pass
    with pytest.raises(MountFailed), mounted(tmp_path, tmp_path / "nowhere"):
        pass
