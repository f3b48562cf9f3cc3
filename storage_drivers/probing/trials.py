"""The trials of a mount.

A trial returns whether it works and what was seen; an OSError means that it does not work.
"""

from __future__ import annotations

import errno
import fcntl
import math
import os
import socket
import time
import unicodedata
from collections.abc import Callable
from enum import StrEnum

from sluice_s3.storage_drivers.fsutil import FILE_MODE, write_all
from sluice_s3.storage_drivers.packs import holes
from sluice_s3.storage_drivers.probing.scratch import CONTENT, Outcome, Scratch
from sluice_s3.storage_drivers.probing.sync_trials import (
    fsync_directory,
    fsync_directory_reaches,
    fsync_file,
    fsync_reaches,
)

SPACE = 4 << 20
"""Bytes written to check that free space shrinks."""
COMPARED_FILES = 5
"""Files whose times are compared."""


class Capability(StrEnum):
    """An ability that a mount may have."""

    EXCLUSIVE_CREATE = "exclusive create"
    READ_BACK = "read back"
    SIZE_AFTER_CLOSE = "size after close"
    FSYNC_FILE = "fsync of a file"
    FSYNC_DIRECTORY = "fsync of a directory"
    FSYNC_REACHES = "fsync of a file reaches the mount"
    FSYNC_DIRECTORY_REACHES = "fsync of a directory reaches the mount"
    NOWAIT = "RWF_NOWAIT"
    SENDFILE = "sendfile"
    PUNCH = "punch holes"
    FALLOCATE = "fallocate"
    COPY_RANGE = "copy_file_range"
    RENAME = "rename"
    RENAME_OVER = "rename over"
    RENAME_ACROSS = "rename across directories"
    LINK = "link"
    TMPFILE = "O_TMPFILE"
    XATTR = "xattr"
    FLOCK = "flock"
    READ_AFTER_UNLINK = "read after unlink"
    RMDIR_REFUSES = "rmdir refuses a full directory"
    TRUNCATE_CLEARS = "truncate clears"
    LONG_NAMES = "names of 255 bytes"
    CASE = "case of names kept apart"
    UNICODE = "Unicode forms kept apart"
    MTIME = "mtime"
    FREE_SPACE = "free space follows"


def exclusive_create(scratch: Scratch) -> Outcome:
    """Return whether O_EXCL refuses an existing name."""
    path = scratch.path("exclusive")
    os.close(scratch.create(path))
    try:
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
    except FileExistsError:
        return True, ""
    os.close(fd)
    return False, "a second exclusive create of the same name succeeded"


def read_back(scratch: Scratch) -> Outcome:
    """Return whether a new descriptor reads what was written through a closed one."""
    path = scratch.path("content")
    scratch.write(path, CONTENT)
    found = scratch.read(path)
    return found == CONTENT, "" if found == CONTENT else "what is read is not what was written"


def size_after_close(scratch: Scratch) -> Outcome:
    """Return whether stat(2) reports the size of a file that was just closed."""
    path = scratch.path("size")
    scratch.write(path, CONTENT)
    size = scratch.timed("stat", os.stat, path).st_size
    return size == len(CONTENT), "" if size == len(CONTENT) else f"{size} bytes of {len(CONTENT)} written"


def nowait(scratch: Scratch) -> Outcome:
    """Return whether a read can be limited to the page cache."""
    path = scratch.path("nowait")
    scratch.write(path, CONTENT)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)
    except BlockingIOError:
        pass
    finally:
        os.close(fd)
    return True, ""


def send_file(scratch: Scratch) -> Outcome:
    """Return whether sendfile(2) accepts a file of this mount."""
    path = scratch.path("sendfile")
    scratch.write(path, CONTENT)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    here, there = socket.socketpair()
    try:
        sent = scratch.timed("sendfile", os.sendfile, here.fileno(), fd, 1, 4096)
        works = there.recv(4096, socket.MSG_WAITALL if sent == 4096 else 0) == CONTENT[1 : sent + 1] and sent > 0
    finally:
        here.close()
        there.close()
        os.close(fd)
    return works, "" if works else "other bytes than those written"


def punch(scratch: Scratch) -> Outcome:
    """Return whether a hole frees its space and leaves the rest."""
    scratch.progress.step("fallocate")
    return holes.probe(scratch.directory), ""


def fallocate(scratch: Scratch) -> Outcome:
    """Return whether space can be reserved."""
    fd = scratch.create(scratch.path("fallocate"))
    try:
        scratch.timed("fallocate", holes.allocate, fd, 0, 1 << 16)
        return True, ""
    finally:
        os.close(fd)


def copy_range(scratch: Scratch) -> Outcome:
    """Return whether copy_file_range(2) copies."""
    source, target = scratch.path("copied"), scratch.path("copy")
    scratch.write(source, CONTENT)
    with open(source, "rb") as read, open(scratch.create(target), "wb") as written:
        count = scratch.timed("copy_file_range", os.copy_file_range, read.fileno(), written.fileno(), len(CONTENT))
    works = count > 0 and scratch.read(target) == CONTENT[:count]
    return works, "" if works else "other bytes than those copied"


def rename(scratch: Scratch) -> Outcome:
    """Return whether a file can be renamed to a free name."""
    old, new = scratch.path("old"), scratch.path("new")
    scratch.write(old, CONTENT)
    scratch.timed("rename", os.rename, old, new)
    works = scratch.read(new) == CONTENT and not os.path.exists(old)
    return works, "" if works else "the file is not whole under its new name only"


def rename_over(scratch: Scratch) -> Outcome:
    """Return whether a file can replace another."""
    old, new = scratch.path("over-from"), scratch.path("over-to")
    scratch.write(old, CONTENT)
    scratch.write(new, b"replaced")
    scratch.timed("rename", os.rename, old, new)
    works = scratch.read(new) == CONTENT and not os.path.exists(old)
    return works, "" if works else "the file is not whole under its new name only"


def rename_across(scratch: Scratch) -> Outcome:
    """Return whether a file can move to another directory."""
    old = scratch.path("across")
    new = scratch.inside(scratch.make_directory("across-to"), "file")
    scratch.write(old, CONTENT)
    scratch.timed("rename", os.rename, old, new)
    works = scratch.read(new) == CONTENT and not os.path.exists(old)
    return works, "" if works else "the file is not whole in its new directory only"


def link(scratch: Scratch) -> Outcome:
    """Return whether a file can have two names."""
    old, new = scratch.path("linked"), scratch.path("link")
    scratch.write(old, CONTENT)
    scratch.timed("link", os.link, old, new)
    works = scratch.read(new) == CONTENT
    return works, f"{os.stat(new).st_nlink} links counted" if works else "the second name gives other bytes"


def tmpfile(scratch: Scratch) -> Outcome:
    """Return whether a file can be created without a name."""
    fd = scratch.timed("O_TMPFILE", os.open, scratch.directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, FILE_MODE)
    try:
        # The directory is ignored for an absolute path, but makes Python follow the link in /proc.
        os.link(f"/proc/self/fd/{fd}", scratch.path("named-later"), src_dir_fd=fd, follow_symlinks=True)
    finally:
        os.close(fd)
    return True, ""


def xattr(scratch: Scratch) -> Outcome:
    """Return whether extended attributes are stored."""
    path = scratch.path("xattr")
    scratch.write(path, b"x")
    scratch.timed("setxattr", os.setxattr, path, "user.sluice", CONTENT[:1000])
    works = scratch.timed("getxattr", os.getxattr, path, "user.sluice") == CONTENT[:1000]
    return works, "" if works else "another value than the one set"


def flock(scratch: Scratch) -> Outcome:
    """Return whether a lock excludes another descriptor."""
    path = scratch.path("flock")
    scratch.write(path, b"x")
    with open(path, "r+b") as first, open(path, "r+b") as second:  # NFS locks only what is open for writing
        scratch.timed("flock", fcntl.flock, first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True, ""
    return False, "two descriptors held it at once"


def read_after_unlink(scratch: Scratch) -> Outcome:
    """Return whether an open descriptor outlives the name of its file."""
    path = scratch.path("unlinked")
    scratch.write(path, CONTENT)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        scratch.timed("unlink", os.unlink, path)
        works = os.pread(fd, len(CONTENT) + 1, 0) == CONTENT
    finally:
        os.close(fd)
    return works, "" if works else "other bytes than those written"


def rmdir_refuses(scratch: Scratch) -> Outcome:
    """Return whether rmdir(2) refuses a directory with files (zdbfs removes them all)."""
    directory = scratch.make_directory("full")
    for number in range(3):
        scratch.write(scratch.inside(directory, f"file-{number}"), b"x")
    try:
        os.rmdir(directory)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return True, ""
        raise
    return False, "the directory is gone, and the files in it"


def truncate_clears(scratch: Scratch) -> Outcome:
    """Return whether truncated bytes are gone when the file grows again."""
    fd = scratch.create(scratch.path("truncate"))
    try:
        write_all(fd, CONTENT)
        scratch.timed("ftruncate", os.ftruncate, fd, 0)
        os.ftruncate(fd, 64)
        found = os.pread(fd, 65, 0)
    finally:
        os.close(fd)
    return found == bytes(64), "" if found == bytes(64) else "old bytes come back" if len(found) == 64 else "wrong size"


def long_names(scratch: Scratch) -> Outcome:
    """Return whether a name may have 255 bytes."""
    limit = os.statvfs(scratch.directory).f_namemax
    directory = scratch.make_directory("names")
    for name in ("n" * 255, "ü" * 127):
        scratch.write(scratch.inside(directory, name), b"x")
    return True, f"{limit} by statvfs"


def case(scratch: Scratch) -> Outcome:
    """Return whether `Name` and `name` are two files."""
    return _apart(scratch, "case", "Name", "name")


def unicode_forms(scratch: Scratch) -> Outcome:
    """Return whether composed and decomposed letters are two files.

    Their names must also come back from readdir unchanged.
    """
    composed = unicodedata.normalize("NFC", "é")
    return _apart(scratch, "unicode", composed, unicodedata.normalize("NFD", composed))


def _apart(scratch: Scratch, directory: str, first: str, second: str) -> Outcome:
    parent = scratch.make_directory(directory)
    scratch.write(scratch.inside(parent, first), b"first")
    try:
        scratch.write(scratch.inside(parent, second), b"second")
    except FileExistsError:
        return False, "the second is the first"
    works = set(os.listdir(parent)) == {first, second}
    return works, "" if works else "readdir gives other names"


def mtime(scratch: Scratch) -> Outcome:
    """Return the granularity of modification times, and their distance from the local clock."""
    times = []
    for number in range(COMPARED_FILES):
        path = scratch.path(f"mtime-{number}")
        scratch.write(path, b"x")
        times.append(scratch.timed("stat", os.stat, path).st_mtime_ns)
        time.sleep(0.003)
    common = math.gcd(*times)
    grain = next((unit for unit in (10**9, 10**6, 10**3) if common % unit == 0), 1)
    ahead = times[-1] / 1e9 - time.time()
    return grain < 10**9, f"in steps of {grain} ns, {ahead:+.3f} s from the clock here"


def free_space(scratch: Scratch) -> Outcome:
    """Return whether statvfs(3) sees what was written; others may write at the same time."""
    before = scratch.timed("statvfs", os.statvfs, scratch.directory)
    fd = scratch.create(scratch.path("space"))
    try:
        write_all(fd, os.urandom(SPACE))
        os.fsync(fd)
    finally:
        os.close(fd)
    after = scratch.timed("statvfs", os.statvfs, scratch.directory)
    taken = before.f_bavail * before.f_frsize - after.f_bavail * after.f_frsize
    inodes = "inodes are counted" if before.f_files else "inodes are not counted"
    return SPACE // 2 <= taken <= 8 * SPACE, f"{taken} bytes less after {SPACE} written; {inodes}"


CHECKS: dict[Capability, Callable[[Scratch], Outcome]] = {
    Capability.EXCLUSIVE_CREATE: exclusive_create,
    Capability.READ_BACK: read_back,
    Capability.SIZE_AFTER_CLOSE: size_after_close,
    Capability.FSYNC_FILE: fsync_file,
    Capability.FSYNC_DIRECTORY: fsync_directory,
    Capability.FSYNC_REACHES: fsync_reaches,
    Capability.FSYNC_DIRECTORY_REACHES: fsync_directory_reaches,
    Capability.NOWAIT: nowait,
    Capability.SENDFILE: send_file,
    Capability.PUNCH: punch,
    Capability.FALLOCATE: fallocate,
    Capability.COPY_RANGE: copy_range,
    Capability.RENAME: rename,
    Capability.RENAME_OVER: rename_over,
    Capability.RENAME_ACROSS: rename_across,
    Capability.LINK: link,
    Capability.TMPFILE: tmpfile,
    Capability.XATTR: xattr,
    Capability.FLOCK: flock,
    Capability.READ_AFTER_UNLINK: read_after_unlink,
    Capability.RMDIR_REFUSES: rmdir_refuses,
    Capability.TRUNCATE_CLEARS: truncate_clears,
    Capability.LONG_NAMES: long_names,
    Capability.CASE: case,
    Capability.UNICODE: unicode_forms,
    Capability.MTIME: mtime,
    Capability.FREE_SPACE: free_space,
}

AT_START = (
    Capability.EXCLUSIVE_CREATE,
    Capability.READ_BACK,
    Capability.SIZE_AFTER_CLOSE,
    Capability.FSYNC_FILE,
    Capability.FSYNC_DIRECTORY,
    Capability.FSYNC_REACHES,
    Capability.FSYNC_DIRECTORY_REACHES,
    Capability.NOWAIT,
    Capability.SENDFILE,
    Capability.PUNCH,
)
"""The trials at the start of a store: what it relies on, or chooses by.

They create no directory.
"""
