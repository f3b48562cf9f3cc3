"""What each personality does and does not, by plain calls on the mount."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

import pytest

from tests.tools.loadtests.mounts.conftest import Make

libc = ctypes.CDLL(None, use_errno=True)


def write(path: Path, body: bytes) -> Path:
    path.write_bytes(body)
    return path


def fallocate(fd: int, mode: int, offset: int, length: int) -> int:
    """0 or an errno."""
    if libc.fallocate(fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length)):
        return ctypes.get_errno()
    return 0


@pytest.mark.parametrize("personality", ["plain", "nfs", "zdbfs"])
def test_everything_goes_through(share: Make, personality: str) -> None:
    made = share(personality=personality).path / "made"
    made.mkdir(0o700)
    body = os.urandom(3_000_000)
    with open(made / "file", "xb") as file:
        file.write(body)
        os.fsync(file.fileno())
    with pytest.raises(FileExistsError):
        open(made / "file", "xb").close()
    assert (made / "file").read_bytes() == body
    assert (made / "file").stat().st_size == len(body)
    with open(made / "file", "rb") as file:
        assert os.pread(file.fileno(), 1000, 200_000) == body[200_000:201_000]
    with open(made / "file", "r+b") as file:
        os.pwrite(file.fileno(), b"other", 10)
    assert (made / "file").read_bytes()[8:17] == body[8:10] + b"other" + body[15:17]
    os.truncate(made / "file", 5)
    (made / "file").rename(made / "other")
    assert os.listdir(made) == ["other"]
    os.link(made / "other", made / "linked")
    os.symlink("other", made / "symbolic")
    assert os.readlink(made / "symbolic") == "other"
    assert (made / "linked").read_bytes() == (made / "symbolic").read_bytes() == body[:5]
    os.chmod(made / "other", 0o640)
    os.utime(made / "other", (1_000_000_000, 1_000_000_001))
    found = (made / "other").stat()
    assert (found.st_mode & 0o777, found.st_mtime) == (0o640, 1_000_000_001)
    with open(made / "other", "ab") as file:
        file.write(b"more")
    assert (made / "other").read_bytes() == body[:5] + b"more"
    for name in ("other", "linked", "symbolic"):
        (made / name).unlink()
    made.rmdir()
    assert not made.exists()
    assert os.statvfs(made.parent).f_blocks > 0


def test_plain_refuses_what_posix_refuses(share: Make) -> None:
    where = share(personality="plain").path
    for name in ("full", "other"):
        (where / name).mkdir()
        write(where / name / "file", b"here")
    with pytest.raises(OSError, match="not empty"):
        (where / "full").rmdir()
    with pytest.raises(OSError, match="not empty"):
        (where / "full").rename(where / "other")
    with pytest.raises(OSError, match="Invalid argument"):
        noreplace(where / "full" / "file", where / "other" / "new")


def noreplace(old: Path, new: Path) -> None:
    """renameat2(2) with RENAME_NOREPLACE."""
    if libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), 1):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def test_plain_has_attributes_holes_and_nanoseconds(share: Make) -> None:
    where = share(personality="plain").path
    file = write(where / "file", bytes(range(256)) * 64)
    os.setxattr(file, "user.a", b"b")
    assert os.getxattr(file, "user.a") == b"b"
    assert os.listxattr(file) == ["user.a"]
    with open(file, "r+b") as opened:
        assert fallocate(opened.fileno(), 3, 0, 4096) == 0
        assert os.pread(opened.fileno(), 8, 4092) == bytes(4) + bytes(range(4))
    os.utime(file, ns=(5, 1_234_567_891))
    assert file.stat().st_mtime_ns == 1_234_567_891
    file.touch()
    assert file.stat().st_mtime_ns > 1_000_000_000_000_000_000


@pytest.mark.parametrize("personality", ["plain", "nfs"])
def test_an_open_file_outlives_its_name(share: Make, personality: str) -> None:
    where = share(personality=personality).path
    for gone in ("unlinked", "replaced"):
        with open(write(where / gone, b"still here"), "rb") as file:
            if gone == "unlinked":
                (where / gone).unlink()
            else:
                write(where / "new", b"another").rename(where / gone)
            assert file.read() == b"still here"
    assert not (where / "unlinked").exists()
    assert (where / "replaced").read_bytes() == b"another"


@pytest.mark.parametrize("personality", ["nfs", "zdbfs", "no-rename"])
def test_without_attributes_and_fallocate(share: Make, personality: str) -> None:
    file = share(personality=personality).path / "file"
    with open(file, "xb") as opened:
        assert fallocate(opened.fileno(), 0, 0, 4096) == errno.EOPNOTSUPP
    with pytest.raises(OSError) as refused:
        os.setxattr(file, "user.a", b"b")
    assert refused.value.errno == errno.EOPNOTSUPP
    with pytest.raises(OSError) as refused:
        os.getxattr(file, "user.a")
    assert refused.value.errno == errno.EOPNOTSUPP


@pytest.mark.parametrize("personality", ["plain", "nfs", "zdbfs"])
def test_without_nameless_files(share: Make, personality: str) -> None:
    with pytest.raises(OSError) as refused:
        os.open(share(personality=personality).path, os.O_TMPFILE | os.O_RDWR)
    assert refused.value.errno == errno.EOPNOTSUPP


def test_zdbfs_rmdir_destroys(share: Make) -> None:
    where = share(personality="zdbfs").path
    (where / "full" / "deep").mkdir(parents=True)
    write(where / "full" / "deep" / "file", b"gone")
    (where / "full").rmdir()
    assert os.listdir(where) == []
    assert not (where / "full" / "deep" / "file").exists()


def test_zdbfs_rename_destroys(share: Make) -> None:
    where = share(personality="zdbfs").path
    for name in ("old", "new"):
        (where / name).mkdir()
        write(where / name / f"of-{name}", b"here")
    with open(where / "new" / "of-new", "rb") as file:
        (where / "old").rename(where / "new")
        with pytest.raises(FileNotFoundError):
            os.pread(file.fileno(), 4, 0)
    assert os.listdir(where / "new") == ["of-old"]


@pytest.mark.parametrize("how", ["unlink", "replace", "rmdir"])
def test_zdbfs_unlink_kills_descriptors(share: Make, how: str) -> None:
    where = share(personality="zdbfs").path
    (where / "in").mkdir()
    file = write(where / "in" / "file", b"read me")
    with open(file, "rb") as reader, open(file, "r+b") as writer:
        assert os.pread(reader.fileno(), 4, 0) == b"read"
        if how == "unlink":
            file.unlink()
        elif how == "replace":
            write(where / "in" / "new", b"another").rename(file)
        else:
            (where / "in").rmdir()
        for call in (lambda: os.pread(reader.fileno(), 4, 0), lambda: os.pwrite(writer.fileno(), b"x", 0)):
            with pytest.raises(OSError) as failed:
                call()
            assert failed.value.errno in (errno.ENOENT, errno.EIO)
    if how == "replace":
        assert file.read_bytes() == b"another"


def test_zdbfs_sync_does_nothing(make: Make) -> None:
    mount = make(personality="zdbfs", tracked=True)
    with open(mount.path / "file", "xb") as file:
        file.write(b"believed to be safe")
        file.flush()
        os.fsync(file.fileno())
    directory = os.open(mount.path, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
    mount.crash()
    assert os.listdir(mount.path) == []


def test_zdbfs_truncate_keeps_old_bytes(share: Make) -> None:
    where = share(personality="zdbfs").path
    file = write(where / "file", b"hello, world")
    os.truncate(file, 0)
    assert file.read_bytes() == b""
    os.truncate(file, 12)
    assert file.read_bytes() == b"hello, world"
    os.truncate(file, 2)
    with open(file, "r+b") as opened:
        os.pwrite(opened.fileno(), b"!!", 4)
    assert file.read_bytes() == b"hell!!"
    os.truncate(file, 12)
    assert file.read_bytes() == b"hell!! world"


def test_zdbfs_listing_skips_when_others_are_removed(share: Make) -> None:
    mount = share(personality="zdbfs")
    where = mount.path
    for number in range(400):
        # so long that Linux asks for them a few at a time
        (mount.backing / f"{number:0200}").touch()
    with os.scandir(where) as found:
        for entry in found:
            os.unlink(entry.path)
    left = len(os.listdir(where))
    assert 0 < left < 390


def test_plain_listing_skips_nothing(share: Make) -> None:
    mount = share(personality="plain")
    where = mount.path
    for number in range(400):
        (mount.backing / f"{number:0200}").touch()
    with os.scandir(where) as found:
        for entry in found:
            os.unlink(entry.path)
    assert os.listdir(where) == []


def test_zdbfs_times_and_links(share: Make) -> None:
    where = share(personality="zdbfs").path
    file = write(where / "file", b"x")
    assert file.stat().st_mtime_ns % 1_000_000_000 == 0
    os.utime(file, ns=(5, 1_234_567_891))
    assert file.stat().st_mtime_ns == 1_000_000_000
    (where / "directory").mkdir()
    assert (where / "directory").stat().st_nlink == 0
    assert file.stat().st_nlink == 1


def test_no_rename_writes_new_files_once(share: Make) -> None:
    where = share(personality="no-rename").path
    file = write(where / "file", b"written once")
    assert file.read_bytes() == b"written once"
    for refused in (
        lambda: file.rename(where / "other"),
        lambda: open(file, "r+b"),
        lambda: open(file, "wb"),
        lambda: os.truncate(file, 3),
    ):
        with pytest.raises(PermissionError):
            refused()
    with pytest.raises(OSError):
        os.link(file, where / "linked")
    with open(where / "holes", "xb") as opened, pytest.raises(OSError, match="Invalid argument"):
        os.pwrite(opened.fileno(), b"x", 10)
    file.unlink()
    assert not file.exists()
