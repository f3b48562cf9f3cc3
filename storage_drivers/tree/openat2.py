"""Opens below a directory that follow no link and touch only regular files.

Users who can write to the directory can plant links, pipes and devices there; opening one of them would disclose other
files, hang, or do whatever a device does. openat2(2) refuses links in every component; where it is missing (before
Linux 5.6, some sandboxes) the components are opened one by one.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

OPENAT2 = 437
RENAMEAT2 = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "ppc64le": 357, "s390x": 347, "armv7l": 382}
NO_MAGICLINKS, NO_SYMLINKS, BENEATH = 0x02, 0x04, 0x08
NOREPLACE = 1
"""linux/openat2.h, linux/fs.h"""
MAX_ATTEMPTS = 8
"""Attempts: openat2(2) returns EAGAIN while another process renames a directory."""
PATH = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class _How(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def open_beneath(root: int, path: bytes, flags: int) -> int:
    """Open `path` below the directory `root`, following no link.

    Raises OSError: ELOOP or ENOTDIR where a link is on the way. A link at the end is refused as well, or with O_PATH
    opened as the link it is. No `..` may be in the path.
    """
    if has_openat2():
        for _ in range(MAX_ATTEMPTS):
            try:
                return _openat2(root, path, flags)
            except OSError as error:
                if error.errno != errno.EAGAIN:
                    raise
    return _by_components(root, path, flags)


def open_regular(root: int, path: bytes) -> tuple[int, os.stat_result] | None:
    """Open a regular file for reading; return descriptor and status.

    Returns None when it is no regular file. Raises OSError.
    """
    fd = open_beneath(root, path, PATH)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        file = os.open(f"/proc/self/fd/{fd}", READ) if _has_proc() else open_beneath(root, path, READ | os.O_NOFOLLOW)
    finally:
        os.close(fd)
    try:
        status = os.fstat(file)
        regular = stat.S_ISREG(status.st_mode)
    except OSError:
        os.close(file)
        raise
    if not regular:
        os.close(file)
        return None
    return file, status


def status_of(root: int, path: bytes) -> os.stat_result:
    """Return the status of a path without following a link. Raises OSError."""
    fd = open_beneath(root, path, PATH)
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


@contextmanager
def opened(root: int, path: bytes, flags: int) -> Iterator[int]:
    """Hold `open_beneath` for a block."""
    fd = open_beneath(root, path, flags)
    try:
        yield fd
    finally:
        os.close(fd)


def rename_new(source_fd: int, source: bytes, target_fd: int, target: bytes) -> None:
    """Rename to a name that must be free.

    Raises FileExistsError; OSError(EINVAL) if the mount has no such rename.
    """
    number = RENAMEAT2.get(os.uname().machine)
    if number is None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    _check_result(
        _libc.syscall(number, source_fd, ctypes.c_char_p(source), target_fd, ctypes.c_char_p(target), NOREPLACE)
    )


@functools.cache
def has_openat2() -> bool:
    """Return whether openat2(2) works here."""
    root = os.open("/", PATH)
    try:
        os.close(_openat2(root, b".", PATH))
    except OSError:
        return False
    finally:
        os.close(root)
    return True


@functools.cache
def _has_proc() -> bool:
    return os.path.isdir("/proc/self/fd")


def _openat2(root: int, path: bytes, flags: int) -> int:
    how = _How(flags, 0, BENEATH | NO_SYMLINKS | NO_MAGICLINKS)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    return _check_result(_libc.syscall(OPENAT2, root, ctypes.c_char_p(path), ctypes.byref(how), size))


def _check_result(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _by_components(root: int, path: bytes, flags: int) -> int:
    *parents, name = path.split(b"/")
    directory = root
    try:
        for parent in parents:
            child = os.open(parent, PATH | os.O_DIRECTORY, dir_fd=directory)
            if directory != root:
                os.close(directory)
            directory = child
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=directory)
    finally:
        if directory != root:
            os.close(directory)
