"""Files with fixed names, opened so that no other user can plant their own.

Three users are trusted with such a file: the one who runs this process, root, and the owner of the directory that
contains the file. The last one lets a command run by root work on the files of a service of another user. That owner is
not trusted where anybody could have created the directory: when all users can write to it, or when it, or a parent,
lies in a directory that all users can write to (such as /tmp) and belongs to another user.

A mount may report another owner or other permissions than a file was created with (FUSE, SMB, an NFS server that maps
root to another user). So before a file is refused a new one is created beside it, and what the mount reports of that
one is ignored. No such mount separates users by owner and permissions.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = 0
PRIVATE_MODE = 0o600
DIRECTORY_MODE = 0o700
ALL_WRITE = stat.S_IWOTH
NOT_OWNER = stat.S_IRWXG | stat.S_IRWXO
SECRET_BYTES = 64 * 1024
"""Maximum bytes of a file of credentials."""

REMEDY = "(run this as that user if it is yours, else remove it or name another by SLUICE_RUNTIME_DIR)"

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Flags of every open. A planted FIFO would otherwise block the process."""


class UnsafeFile(PermissionError):
    """A file or directory that an untrusted user may have created or changed.

    The message says what to do.
    """

    def __str__(self) -> str:
        return f"{self.strerror}: {self.filename}"


class _Shown(NamedTuple):
    """Owner and permissions that a filesystem reports of this process's new file of mode 0600."""

    uid: int
    mode: int


def describe_failure(error: OSError, home: Path) -> str:
    """Return why a file or directory cannot be used, for the operator.

    Where permissions forbid it that is the nearest path that there is, its owner, this user, and what helps. `home` is
    the gateway's directory, which an error without a path is about.
    """
    wanted = Path(error.filename or home).absolute()
    if error.errno != errno.EACCES:
        return f"{error.strerror}: {error.filename or home}"
    for place in (wanted, *wanted.parents):
        try:
            found = os.stat(place)
            break
        except OSError:  # missing, or below a directory that is closed to this user
            continue
    where = f"{error.strerror}: {place} belongs to user {found.st_uid} (mode {stat.S_IMODE(found.st_mode):o})"
    if os.geteuid() in (ROOT, found.st_uid) and found.st_mode & stat.S_IWUSR:
        return (
            f"{where}, which user {os.geteuid()} may write to, but the mount maps this user to another one (NFS: "
            f"root_squash): run as another user, to whom the directory belongs"
        )
    owner = f"{os.geteuid()}:{os.getegid()}"
    if place.is_relative_to(home.absolute()):
        cure = f"make all of it this user's (chown -R {owner} {home.absolute()})"
    elif place == wanted:
        cure = f"make it this user's (chown {owner} {place})"
    else:  # nothing below it is there yet: it is somebody else's
        user, _, group = owner.partition(":")
        cure = f"make a directory there for this user (install -d -o {user} -g {group} {wanted})"
    return (
        f"{where}, and this runs as user {os.geteuid()}: {cure}, or run as its owner (in a container: --user "
        f"{found.st_uid}:{found.st_gid})"
    )


def make_directories(home: Path, run_dir: Path) -> None:
    """Create the directory of the gateway's own files, and its runtime directory.

    Raises OSError.
    """
    if home != run_dir:
        home.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    make_directory(run_dir)


def make_directory(path: Path) -> None:
    """Create a directory for this user alone, or check an existing one.

    In a directory that all users can write to it must belong to this user, be no link, and be closed to others.
    Elsewhere it may belong to another trusted user and be readable, but not writable for all. Raises OSError.
    """
    try:
        path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    except FileExistsError:
        pass  # no directory, which is refused now
    with _private_directory(path):
        pass


def open_file(path: Path, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """Open a file of the runtime directory; a new one has mode 0600.

    It is opened by the descriptor of its directory, which is checked each time, and never through a link. Raises
    OSError.
    """
    with _private_directory(path.parent) as directory:
        return _open_in(directory, path, flags)


def replace_file(path: Path) -> int:
    """Replace a file of the runtime directory with a new, empty one. Raises OSError."""
    with _private_directory(path.parent) as directory:
        try:
            os.unlink(path.name, dir_fd=directory)
        except FileNotFoundError:
            pass
        return _open_in(directory, path, os.O_RDWR | os.O_CREAT | os.O_EXCL)


def read_secret(path: Path) -> str:
    """Read a file of credentials, which must be a trusted user's and closed to others.

    Raises OSError.
    """
    with _directory(path.parent) as directory:
        descriptor = _open_in(directory, path, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as file:
            if os.fstat(descriptor).st_mode & NOT_OWNER and not _ignores_modes(directory):
                mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
                raise _unsafe(
                    f"others than its owner may open this file of secrets, its mode is {mode:o} (if it holds what you "
                    "put there, chmod 600 it, else remove it)",
                    path,
                )
            content = file.read(SECRET_BYTES)
    try:
        return content.decode()
    except UnicodeDecodeError:
        reason = "this file is no text (restore it, or remove it to have it made again)"
        raise OSError(errno.EILSEQ, reason, str(path)) from None


def create_secret(path: Path, text: str) -> None:
    """Write a new file that only its owner can read, durable with its directory entry.

    Raises FileExistsError.
    """
    with _directory(path.parent) as directory:
        descriptor = _open_in(directory, path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        sync_directory(".", dir_fd=directory)


def sync_directory(path: str | Path, *, dir_fd: int | None = None) -> None:
    """Sync the entries of a directory. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_owners(paths: Iterable[Path]) -> None:
    """Refuse files that an untrusted user may have planted.

    Links count as files and are followed. For files that a library opens by their paths. Missing files pass. Raises
    OSError.
    """
    for path in paths:
        for place in dict.fromkeys((path, Path(os.path.realpath(path)))):
            try:
                found = os.lstat(place)
            except FileNotFoundError:
                continue
            with _directory(place.parent) as directory:
                if not _is_trusted(found, directory, place.parent):
                    raise _foreign(found, place)


def check_given(descriptor: int, path: Path) -> None:
    """Refuse an open file of the operator that all users can write to.

    Its owner and its readers are the operator's choice: a bind mount and an orchestrator's secret have others. Raises
    UnsafeFile.
    """
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or not found.st_mode & ALL_WRITE:
        return
    if os.fstatvfs(descriptor).f_flag & os.ST_RDONLY:
        return
    with _directory(Path(os.path.realpath(path)).parent) as directory:
        if not _ignores_modes(directory):
            raise _unsafe("all users can write to this file, which is to be trusted (chmod o-w it)", path)


def default_runtime_base() -> Path:
    """Return the directory of runtime directories by default.

    It is XDG_RUNTIME_DIR, unless that belongs to another user, which `sudo` may have preserved; else the directory of
    temporary files.
    """
    given = os.environ.get("XDG_RUNTIME_DIR")
    if given and (not os.path.exists(given) or os.stat(given).st_uid in _own()):
        return Path(given)
    return Path(tempfile.gettempdir())


@contextmanager
def _directory(path: Path) -> Iterator[int]:
    descriptor = os.open(path, _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _private_directory(path: Path) -> Iterator[int]:
    """Open a runtime directory as a descriptor.

    Raises UnsafeFile unless it is this user's alone: see `make_directory`.
    """
    shared = bool(os.stat(path.absolute().parent).st_mode & ALL_WRITE)
    try:
        descriptor = os.open(path, _DIRECTORY | (os.O_NOFOLLOW if shared else 0))
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise _unsafe(
                "this runtime directory is a link or no directory (remove it, or name another by SLUICE_RUNTIME_DIR)",
                path,
            ) from None
        raise
    try:
        _check_private(descriptor, path, shared)
        yield descriptor
    finally:
        os.close(descriptor)


def _check_private(descriptor: int, path: Path, shared: bool) -> None:
    found = os.fstat(descriptor)
    foreign = (shared and found.st_uid != os.geteuid()) or _may_be_planted(path)
    if foreign and not _is_mapped(found.st_uid, descriptor):
        raise _unsafe(
            f"another user may have made this runtime directory, its owner is user {found.st_uid} {REMEDY}",
            path,
        )
    if found.st_mode & (NOT_OWNER if shared else ALL_WRITE) and not _ignores_modes(descriptor):
        raise _unsafe(
            f"other users may have put files into this runtime directory, its mode is {stat.S_IMODE(found.st_mode):o} "
            "(remove it if nothing runs on it, or name one below it by SLUICE_RUNTIME_DIR)",
            path,
        )


def _open_in(directory: int, path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path.name, flags | _FILE, PRIVATE_MODE, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise _unsafe("this is a link or no regular file, and is not opened (remove it)", path) from None
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _unsafe("this is a link or no regular file, and is not opened (remove it)", path)
        if not _is_trusted(found, directory, path.parent):
            raise _foreign(found, path)
        if flags & os.O_CREAT:
            _give_to_owner(descriptor, found, directory)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _give_to_owner(descriptor: int, found: os.stat_result, directory: int) -> None:
    """Give a file that root has just made to the owner of its directory, whose service must be able to open it."""
    around = os.fstat(directory)
    if found.st_uid == os.geteuid() == 0 != around.st_uid and found.st_nlink == 1 and not found.st_size:
        os.fchown(descriptor, around.st_uid, around.st_gid)


def _is_trusted(found: os.stat_result, directory: int, place: Path) -> bool:
    """Return whether a trusted user put a file into a directory: see the module."""
    around = os.fstat(directory)
    if found.st_nlink > 1 and found.st_uid != around.st_uid and around.st_uid not in _own():
        return False  # a hard link that the directory's owner created to another user's file
    if found.st_uid in _own():
        return True
    if found.st_uid == around.st_uid and not around.st_mode & ALL_WRITE and not _may_be_planted(place):
        return True
    return _is_mapped(found.st_uid, directory)


def _may_be_planted(path: Path) -> bool:
    """Return whether an untrusted user could have planted this directory, or one above it."""
    for start in {os.path.abspath(path), os.path.realpath(path)}:
        below = Path(start)
        for above in below.parents:
            if os.stat(above).st_mode & ALL_WRITE and os.lstat(below).st_uid not in _own():
                return True
            below = above
    return False


def _own() -> tuple[int, int]:
    return os.geteuid(), ROOT


def _is_mapped(uid: int, directory: int) -> bool:
    """Return whether the mount assigns this process's new files here to that other user."""
    if uid in _own():
        return False
    shown = _shown(directory)
    return shown is not None and shown.uid == uid


def _ignores_modes(directory: int) -> bool:
    shown = _shown(directory)
    return shown is not None and bool(shown.mode & NOT_OWNER)


def _shown(directory: int) -> _Shown | None:
    """Create a file, read its status, and remove it. Returns None if that is impossible."""
    name = f".sluice-{secrets.token_hex(8)}"
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, PRIVATE_MODE, dir_fd=directory)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        return _Shown(found.st_uid, stat.S_IMODE(found.st_mode))
    finally:
        os.close(descriptor)
        os.unlink(name, dir_fd=directory)


def _foreign(found: os.stat_result, path: Path) -> UnsafeFile:
    return _unsafe(
        f"this file belongs to user {found.st_uid}, who may have written it and is not trusted (if it is yours, run "
        "this as that user or chown it, else remove it)",
        path,
    )


def _unsafe(reason: str, path: Path) -> UnsafeFile:
    return UnsafeFile(errno.EPERM, reason, str(path))
