"""What a power cut would undo: un-synced bytes and names, with their old state.

The directory behind the mount holds what programs see. For each file with un-synced bytes, the tracker stores its
length at the last sync and which of those bytes were overwritten since. For each directory it stores which names came,
went or were replaced since its sync, with what they were. A crash restores that, newest first.

It is as strict as POSIX: syncing a file does not make its name durable, syncing a directory does not make its files'
bytes durable. A sync of either directory makes a rename durable. After a sync that failed, its bytes are lost for good,
though later syncs succeed (Linux takes them for clean). Modes, owners and times are not tracked.
"""

from __future__ import annotations

import errno
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

HIDDEN = ".fuse_hidden"
"""libfuse's prefix for a file that is unlinked while it is open."""


@dataclass
class Unsynced:
    """The un-synced state of one file.

    `old` has bytes of the synced content that were changed, `lost` those that a sync failed to save.
    """

    fd: int
    size: int
    old: list[tuple[int, bytes]] = field(default_factory=list)
    lost: list[tuple[int, bytes]] = field(default_factory=list)


@dataclass
class Change:
    """A name that is not synced.

    Its directories are known by inode, since they can be renamed.
    """

    kind: str
    directory: int
    name: str
    new_directory: int = 0
    new_name: str = ""
    saved: str = ""
    """What the name was before, among the stored files."""


class Undo:
    """Tracks un-synced changes. Thread-safe.

    Each change of names or bytes happens within `changing`, together with its note here. `saved` is a directory on the
    same file system as `root`, outside it.
    """

    def __init__(self, root: str, saved: Path) -> None:
        self._lock = threading.RLock()
        self.crashed = False
        self._root = root
        self._saved = saved
        self._count = 0
        self._files: dict[int, Unsynced] = {}
        self._changes: list[Change] = []
        self._directories: dict[int, int] = {}

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Exclude other changes until the end of the block. Raises OSError after a crash."""
        with self._lock:
            if self.crashed:
                raise OSError(errno.EIO, "crashed")
            yield

    # names

    def created(self, path: str) -> None:
        """Note a new name."""
        directory, name = self._locate(path)
        self._changes.append(Change("made", directory, name))

    def remove(self, path: str) -> None:
        """Remove the name, and store what it was until the removal is synced. Raises OSError."""
        directory, name = self._locate(path)
        if name.startswith(HIDDEN):
            # its removal was noted when it got that name
            os.unlink(self._root + path)
            return
        self._changes.append(Change("removed", directory, name, saved=self._keep(path)))

    def rename(self, old: str, new: str) -> None:
        """Rename, and store what is replaced. Raises OSError."""
        directory, name = self._locate(old)
        new_directory, new_name = self._locate(new)
        saved = self._keep(new) if os.path.lexists(self._root + new) else ""
        os.rename(self._root + old, self._root + new)
        self._changes.append(Change("renamed", directory, name, new_directory, new_name, saved))

    def synced_directory(self, path: str) -> None:
        """Note that the directory's names are durable. Raises OSError after a crash."""
        inode = os.stat(self._root + path).st_ino
        with self.changing():
            self._settle(lambda change: inode in (change.directory, change.new_directory))

    # bytes

    def will_change(self, fd: int, offset: int, count: int) -> None:
        """Note that bytes of a file will be overwritten, cut off or added."""
        found = os.fstat(fd)
        file = self._files.get(found.st_ino)
        if file is None:
            again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
            file = self._files[found.st_ino] = Unsynced(again, found.st_size)
        count = min(count, file.size - offset)
        if count > 0:
            file.old.append((offset, os.pread(file.fd, count, offset)))

    def synced(self, fd: int) -> None:
        """Note that the file's bytes are durable. Raises OSError after a crash."""
        with self.changing():
            inode = os.fstat(fd).st_ino
            file = self._files.get(inode)
            if file is None:
                return
            if file.lost:
                file.size, file.old = os.fstat(fd).st_size, []
            else:
                del self._files[inode]
                os.close(file.fd)

    def failed(self, fd: int) -> None:
        """Note that a sync failed.

        Its bytes will be gone after a crash, even if later syncs succeed.
        """
        with self._lock:
            file = self._files.get(os.fstat(fd).st_ino)
            if file is None:
                return
            size = os.fstat(fd).st_size
            if size > file.size:
                file.lost.append((file.size, bytes(size - file.size)))
            file.lost += reversed(file.old)
            file.size, file.old = size, []

    def crash(self, survives: float = 0.0, seed: int = 0) -> int:
        """Undo all that is not synced. Returns how many names and files were undone.

        Nothing may be changed later.

        A disk may have saved more than it had to: with `survives` the first such part of the changes of names stays,
        that part of the files keep all their bytes, and the others some of those that were added.
        """
        chance = random.Random(seed)
        with self._lock:
            self.crashed = True
            saved = round(len(self._changes) * survives)
            self._changes = self._changes[saved:]
            for file in self._files.values():
                if chance.random() < survives:
                    os.close(file.fd)
                    continue
                added = max(0, os.fstat(file.fd).st_size - file.size)
                os.ftruncate(file.fd, file.size + int(added * survives * chance.random()))
                for offset, old in reversed(file.old):
                    os.pwrite(file.fd, old, offset)
                for offset, old in file.lost:
                    within = min(len(old), file.size - offset)
                    if within > 0:
                        os.pwrite(file.fd, old[:within], offset)
                os.close(file.fd)
            for change in reversed(self._changes):
                with suppress(FileNotFoundError):
                    self._revert(change)
            count = len(self._files) + len(self._changes)
            self._files, self._changes = {}, []
            for fd in self._directories.values():
                os.close(fd)
            self._directories = {}
            for hidden in Path(self._root).rglob(f"{HIDDEN}*"):
                hidden.unlink()
            return count

    def _revert(self, change: Change) -> None:
        directory = self._directories[change.directory]
        if change.kind == "made":
            os.rename(change.name, self._fresh(), src_dir_fd=directory)
            return
        where, name = directory, change.name
        if change.kind == "renamed":
            where, name = self._directories[change.new_directory], change.new_name
            os.rename(name, change.name, src_dir_fd=where, dst_dir_fd=directory)
        if change.saved:
            os.rename(self._saved / change.saved, name, dst_dir_fd=where)

    def _locate(self, path: str) -> tuple[int, str]:
        parent, name = os.path.split(path)
        found = os.stat(self._root + parent).st_ino
        if found not in self._directories:
            self._directories[found] = os.open(self._root + parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return found, name

    def _settle(self, is_durable: Callable[[Change], bool]) -> None:
        """Forget changes that a crash does not undo any more, and what they had saved."""
        durable = [change for change in self._changes if is_durable(change)]
        self._changes = [change for change in self._changes if not is_durable(change)]
        for change in durable:
            if change.saved:
                self._drop(self._saved / change.saved)

    def _drop(self, path: Path) -> None:
        """Remove a file, or a directory with all its content, for good."""
        if path.is_dir() and not path.is_symlink():
            for inside in path.iterdir():
                self._drop(inside)
            gone = path.stat().st_ino
            path.rmdir()
            self._settle(lambda change: change.directory == gone and change.new_directory in (0, gone))
            return
        found = path.lstat()
        path.unlink()
        if found.st_nlink == 1 and (file := self._files.pop(found.st_ino, None)):
            os.close(file.fd)

    def _keep(self, path: str) -> str:
        fresh = self._fresh()
        os.rename(self._root + path, fresh)
        return fresh.name

    def _fresh(self) -> Path:
        self._count += 1
        return self._saved / str(self._count)
