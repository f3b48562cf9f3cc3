"""The directories between a store's root and its files, made durable and distinguished from twins.

Every method blocks, and raises OSError unless it says otherwise.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from sluice_s3.storage_drivers.errors import StoreFailed, map_errors
from sluice_s3.storage_drivers.fsutil import NO_SYNC
from sluice_s3.storage_drivers.identity import NAME as IDENTITY
from sluice_s3.storage_drivers.mountinfo import mount_of
from sluice_s3.storage_drivers.tree.openat2 import DIRECTORY, open_beneath, opened
from sluice_s3.storage_drivers.tree.trials import Traits, flag_is_set
from sluice_s3.storage_drivers.tree.types import PRIVATE, Collision, refused

MAX_VERIFIED = 16_384
"""Directories that are known to be durable and to have no twins."""
BLOCKING_ERRNOS = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY})
NO_SUCH_NAME = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.EMLINK})
NO_MODES = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
"""Errors of a mount without permissions."""


@contextmanager
def collisions() -> Iterator[None]:
    """Turn a mount's errors for a taken or impossible path into Collision."""
    try:
        yield
    except OSError as error:
        if error.errno in BLOCKING_ERRNOS or error.errno in NO_SUCH_NAME:
            raise Collision(os.strerror(error.errno)) from error
        raise


class Root:
    """An open root for a block, which raises DriverError only."""

    __slots__ = ("_fd", "_path")

    def __init__(self, path: bytes) -> None:
        self._path = path
        self._fd = -1

    def __enter__(self) -> int:
        with map_errors():
            self._fd = os.open(self._path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return self._fd

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._fd)
        if error is not None:
            map_errors().__exit__(kind, error, at)


class Directories:
    """The directories of one store.

    With `full`, new directories survive a power cut, with all their parents.
    """

    def __init__(self, root: Path, full: bool, crash_hook: Callable[[str], None]) -> None:
        self.traits = Traits()
        self._root = os.fsencode(root)
        self._full = full
        self._crash_hook = crash_hook
        self._identity: bytes | None = None
        self._verified: OrderedDict[bytes, tuple[int, int]] = OrderedDict()
        self._lock = threading.Lock()

    # the store
    def root(self) -> Root:
        """Open the root by its name each time, so that a returning mount is found.

        An OSError of the block becomes a DriverError.
        """
        return Root(self._root)

    def is_local(self) -> bool:
        """Return whether the files are accessible through this machine only."""
        return mount_of(os.fsdecode(self._root)).driver == "local"

    def record_identity(self) -> None:
        """Note which store is mounted now."""
        with self.root() as root:
            self._identity = _read_identity(root)

    def check_mounted(self, root: int, path: bytes) -> None:
        """Raise StoreFailed unless the store of the start is mounted and has the bucket's directory.

        It is called for a missing file: only then was the file really removed.
        """
        try:
            identity = _read_identity(root)
            os.stat(PRIVATE, dir_fd=root, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            identity = b""
        if identity != self._identity:
            raise StoreFailed("another store than at the start is here, or none: is the mount missing?")
        self.check_bucket(root, path)

    def check_bucket(self, root: int, path: bytes) -> None:
        """Raise StoreFailed unless the directory of a path's bucket exists."""
        bucket = path.split(b"/", 1)[0]
        try:
            os.close(open_beneath(root, bucket, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise StoreFailed(f"the directory of bucket {bucket.decode()} is missing, or is none") from error
            raise

    def raise_unless_absent(self, error: OSError, root: int, path: bytes) -> None:
        """Return if an error means a missing file on a mounted store.

        Raises Unreadable too.
        """
        if not (isinstance(error, FileNotFoundError) or error.errno in BLOCKING_ERRNOS or error.errno in NO_SUCH_NAME):
            raise refused(error) from error
        self.check_mounted(root, path)

    # on the way to a file
    def parent(self, root: int, path: bytes) -> int:
        """Open the parent directory of a path as a descriptor."""
        return open_beneath(root, path.rpartition(b"/")[0], DIRECTORY)

    def make_parent(self, root: int, path: bytes, *, new_bucket: bool = False) -> int:
        """Open the parent directory of a path, created if it is missing.

        The bucket's own is created for a `new_bucket` only, else StoreFailed: if a file created it, all other files of
        a bucket that is perhaps only unmounted for a while would count as removed. Raises Collision too.
        """
        directory = path.rpartition(b"/")[0]
        with collisions():
            try:
                fd = open_beneath(root, directory, DIRECTORY)
            except FileNotFoundError:
                return self._make_path(root, directory, new_bucket)
            if self._is_verified(directory, fd):
                return fd
            os.close(fd)
            return self._make_path(root, directory, new_bucket)

    def forget(self, path: bytes) -> None:
        """Forget the directories of a path, some of which were missing."""
        with self._lock:
            while path := path.rpartition(b"/")[0]:
                self._verified.pop(path, None)

    def forget_bucket(self, bucket: bytes) -> None:
        """Forget the directories of a bucket that is being removed."""
        with self._lock:
            for path in [path for path in self._verified if path.split(b"/", 1)[0] == bucket]:
                del self._verified[path]

    def is_exact(self, root: int, path: bytes) -> bool:
        """Return whether a path exists under exactly these names."""
        if not (self.traits.folds or self.traits.has_flags):
            return True
        parent = os.open(b".", DIRECTORY, dir_fd=root)
        try:
            for name in path.split(b"/"):
                if self.folds(parent) and not _has_entry(parent, name):
                    try:
                        os.stat(name, dir_fd=parent, follow_symlinks=False)
                    except FileNotFoundError:
                        return True
                    return False
                try:
                    child = os.open(name, DIRECTORY, dir_fd=parent)
                except (FileNotFoundError, NotADirectoryError):
                    return True
                os.close(parent)
                parent = child
        finally:
            os.close(parent)
        return True

    def folds(self, directory: int) -> bool:
        """Return whether a directory takes different names for one."""
        if self.traits.folds or not self.traits.has_flags:
            return self.traits.folds
        return flag_is_set(directory)

    def has_exactly(self, directory: int, name: bytes) -> bool:
        """Return whether a directory lists exactly this name."""
        return _has_entry(directory, name)

    def sync(self, directory: int) -> None:
        """Sync the entries of a directory, if durability requires it."""
        if not self._full:
            return
        try:
            os.fsync(directory)
        except OSError as error:
            if error.errno not in NO_SYNC:
                raise

    # one by one
    def _make_path(self, root: int, directory: bytes, new_bucket: bool) -> int:
        if not new_bucket:
            self.check_bucket(root, directory)
        parent = os.open(b".", DIRECTORY, dir_fd=root)
        try:
            path = b""
            for name in directory.split(b"/"):
                path = path + b"/" + name if path else name
                child = self._open_child(parent, name, path, make=new_bucket or b"/" in path)
                os.close(parent)
                parent = child
            return os.dup(parent)
        finally:
            os.close(parent)

    def _open_child(self, parent: int, name: bytes, path: bytes, *, make: bool) -> int:
        """Open one directory in another; with `make`, create it if it is missing."""
        try:
            child, existed = os.open(name, DIRECTORY, dir_fd=parent), True
        except FileNotFoundError:
            if not make:
                raise StoreFailed("the directory of the bucket went away") from None
            child, existed = self._make_directory(parent, name), False  # its inode may have been a known one
        try:
            if not (existed and self._is_verified(path, child)):
                if self.folds(parent) and not _has_entry(parent, name):
                    raise Collision("a directory of another key differs in case or form only")
                self.sync(parent)  # also for another's directory: it may not be synced yet
                self._remember_verified(path, child)
        except BaseException:
            os.close(child)
            raise
        return child

    def _make_directory(self, parent: int, name: bytes) -> int:
        mode = os.fstat(parent).st_mode & 0o7777
        try:
            os.mkdir(name, mode | 0o700, dir_fd=parent)
        except FileExistsError:
            return os.open(name, DIRECTORY, dir_fd=parent)
        child = os.open(name, DIRECTORY, dir_fd=parent)
        try:
            set_mode(child, mode | 0o700)
            self._crash_hook("publish.made")
        except BaseException:
            os.close(child)
            raise
        return child

    def _is_verified(self, path: bytes, fd: int) -> bool:
        verified = self._verified.get(path)
        if verified is None:
            return False
        status = os.fstat(fd)
        return verified == (status.st_dev, status.st_ino)

    def _remember_verified(self, path: bytes, fd: int) -> None:
        status = os.fstat(fd)
        with self._lock:
            self._verified[path] = (status.st_dev, status.st_ino)
            if len(self._verified) > MAX_VERIFIED:
                self._verified.popitem(last=False)


def set_mode(fd: int, mode: int) -> None:
    """Set permissions regardless of the umask, if the mount has permissions."""
    if os.fstat(fd).st_mode & 0o7777 != mode:
        try:
            os.fchmod(fd, mode)
        except OSError as error:
            if error.errno not in NO_MODES:
                raise


def _read_identity(root: int) -> bytes | None:
    try:
        with opened(root, f"{PRIVATE}/{IDENTITY}".encode(), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC) as fd:
            return os.read(fd, 4096)
    except FileNotFoundError:
        return None


def _has_entry(directory: int, name: bytes) -> bool:
    wanted = os.fsdecode(name)
    with os.scandir(directory) as entries:
        return any(entry.name == wanted for entry in entries)
