"""A filesystem of fsspec, as a store uses it: objects are made once, ranges of them read, listed, removed. All blocks.

This is the one place where what such a filesystem raises becomes a DriverError. Filesystems are not made for threads:
each of our connections has a lock and, where the filesystem keeps a state, an instance of its own.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

from storage_drivers.base import Buffer
from storage_drivers.errors import DriverError, StoreFailed, map_errors
from storage_drivers.remote.sftp import is_alive, make_directory, options_for, prepare_channel, read_range, write_piece

T = TypeVar("T")

THREAD_SAFE = frozenset({"memory", "file", "local"})
"""Protocols whose filesystem keeps no state between calls, beside those that have a loop of their own."""
EXCLUSIVE = ("xb", "wxb")
"""Modes of an open that refuses what is there; paramiko wants the second."""
INSTALL = "the driver fsspec needs a package that is not installed: pip install 'sluice[fsspec]'"

logger = logging.getLogger("sluice.store")


class Broken(Exception):
    """The connection cannot be used any more. The cause is what the filesystem raised."""


def translated(error: BaseException, committed: str = "") -> DriverError:
    """The DriverError for what a filesystem raised; `committed` names a blob that must be there."""
    if isinstance(error, Broken) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, DriverError):
        return error
    if isinstance(error, FileNotFoundError):
        error = FileNotFoundError(errno.ENOENT, "")  # some give no errno
    try:
        with map_errors(committed):
            raise error
    except DriverError as mapped:
        return mapped
    except Exception as other:
        return StoreFailed(type(other).__name__)


class _Connection:
    """One instance of the filesystem. Whoever uses it holds its lock."""

    __slots__ = ("fs", "lock", "writers")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.fs: Any = None
        self.writers = 0
        """Objects that are being written over it."""


class Remote:
    """The place at a URL, with up to `connections` connections to it. `options` go to the filesystem.

    Nothing is asked of it before the first call. Every method may be called in any thread, and raises DriverError.
    """

    def __init__(self, url: str, options: dict[str, Any], connections: int) -> None:
        self._url = url
        self._options = options
        self._connections = [_Connection() for _ in range(max(1, connections))]
        self._connecting = threading.Lock()
        self._shared: Any = None
        self._turns = count()
        self._root: str | None = None
        self._mode = ""

    # connections
    def _open(self) -> Any:
        """A new instance. One at a time: an ssh server drops those who come in a crowd."""
        try:
            from fsspec.core import url_to_fs  # an extra: only who uses this driver has it
        except ImportError as error:
            raise StoreFailed(INSTALL) from error
        with self._connecting:
            if self._shared is not None:
                return self._shared
            options = options_for(self._url, self._options)
            try:
                fs, root = url_to_fs(self._url, skip_instance_cache=True, **options)
            except ImportError as error:
                raise StoreFailed(f"{INSTALL} ({error})") from error
            except ValueError as error:
                raise StoreFailed(f"the URL of the store cannot be used: {error}") from error
            cache = getattr(fs, "dircache", None)
            if cache is not None:  # what other processes make must be seen
                cache.use_listings_cache = False
            prepare_channel(fs)
            if fs.async_impl or THREAD_SAFE.intersection(
                [fs.protocol] if isinstance(fs.protocol, str) else fs.protocol
            ):
                self._shared = fs
            self._root = str(root).rstrip("/")
            return fs

    @contextmanager
    def _held(self, connection: _Connection) -> Iterator[Any]:
        """The filesystem of a connection, for one call. A connection that broke in it is made anew by the next."""
        if self._shared is not None:
            yield self._shared
            return
        with connection.lock:
            if connection.fs is None:
                connection.fs = self._open()
            try:
                yield connection.fs
            except Exception as error:
                if not isinstance(error, FileNotFoundError) and not is_alive(connection.fs, error):
                    connection.fs = None
                    raise Broken from error
                raise

    def _free(self) -> _Connection:
        """One that nobody uses, if there is any. The first ones are taken first, so that few are made."""
        for connection in self._connections:
            if not connection.lock.locked():
                return connection
        return self._connections[next(self._turns) % len(self._connections)]

    def _call(self, work: Callable[[Any], T], committed: str = "", *, again: bool = False) -> T:
        """Do some work with a filesystem; `again` when it may be repeated on another connection if one breaks."""
        try:
            with self._held(self._free()) as fs:
                return work(fs)
        except Exception as error:
            if not again or not isinstance(error, Broken):
                raise translated(error, committed) from error
        return self._call(work, committed)

    def close(self) -> None:
        """Close what connections have; they are made anew by a later call."""
        for connection in self._connections:
            fs, connection.fs = connection.fs, None
            client = getattr(fs, "client", None)
            if client is not None:
                client.close()

    @property
    def root(self) -> str:
        """What all paths begin with. The first use connects."""
        if self._root is None:
            self._call(lambda fs: None)
            assert self._root is not None
        return self._root

    # objects
    def probe(self, path: str) -> bool:
        """Find out whether objects can be made exclusively, by making one at `path`, which is removed again.

        Where nothing can be made at all, as on a full place, the answer is no, and what is stored can be read.
        """
        try:
            self.create(path, b"first")
            try:
                self._mode = next((mode for mode in EXCLUSIVE if self._refuses(path, mode)), "")
            finally:
                self.remove(path)
        except DriverError:
            return False
        return bool(self._mode)

    def _refuses(self, path: str, mode: str) -> bool:
        def twice(fs: Any) -> bool:
            try:
                with fs.open(path, mode) as file:  # object stores refuse when it is closed, and not an empty one
                    file.write(b"second")
            except (NotImplementedError, ValueError):
                return False
            except OSError as error:
                return isinstance(error, FileExistsError) or error.errno in (errno.EEXIST, None)
            return False

        return self._call(twice) and self._makes(f"{path}.{mode}", mode)

    def _makes(self, path: str, mode: str) -> bool:
        """Whether an open in that mode gives a file that can be written at all."""

        def once(fs: Any) -> bool:
            try:
                with fs.open(path, mode) as file:
                    file.write(b"second")
                return bool(fs.cat_file(path) == b"second")
            except Exception:
                return False

        try:
            return self._call(once)
        finally:
            self.remove(path)

    def create(self, path: str, content: Buffer) -> None:
        """Make an object of a few bytes; one that is there is refused."""
        made = NewObject(self, path)
        try:
            made.open()
            made.write(content)
            made.close()
        except BaseException:
            made.abandon()
            raise

    def read(self, path: str, start: int, end: int, committed: str = "") -> bytes:
        """Bytes of an object from `start` up to `end`; fewer where it ends before."""
        return bytes(self._call(lambda fs: read_range(fs, path, start, end), committed, again=True))

    def size(self, path: str, committed: str = "") -> int:
        """Bytes of an object."""

        def ask(fs: Any) -> int:
            found = fs.info(path)
            if found["type"] != "file":
                raise StoreFailed("there is something else in an object's place")
            return int(found["size"])

        return self._call(ask, committed, again=True)

    def exists(self, path: str) -> bool:
        """Whether there is anything at a path."""

        def ask(fs: Any) -> bool:
            try:
                fs.info(path)
            except FileNotFoundError:
                return False
            return True

        return self._call(ask, again=True)

    def remove(self, path: str) -> bool:
        """Remove an object; False when it was not there (where the filesystem tells)."""

        def take_away(fs: Any) -> bool:
            try:
                fs.rm_file(path)
            except FileNotFoundError:
                return False
            return True

        return self._call(take_away, again=True)

    def list(self, path: str) -> list[tuple[str, int]]:
        """Name and bytes of every object right below a path; none where there is no such place."""

        def ask(fs: Any) -> list[tuple[str, int]]:
            try:
                entries = fs.ls(path, detail=True)
            except FileNotFoundError:
                return []
            files = (entry for entry in entries if entry["type"] == "file" and not entry.get("islink"))
            return [(str(entry["name"]).rpartition("/")[2], int(entry["size"] or 0)) for entry in files]

        return self._call(ask, again=True)

    def make_directory(self, path: str) -> None:
        """Make a directory, where the place has such; one that is there is no error."""
        self._call(lambda fs: make_directory(fs, path), again=True)

    def _least_written(self) -> _Connection:
        return min(self._connections, key=lambda connection: connection.writers)


class NewObject:
    """One object on its way. Steps are called one at a time, in any thread; no step waits for the next one."""

    __slots__ = ("_connection", "_file", "_ours", "_path", "_remote")

    def __init__(self, remote: Remote, path: str) -> None:
        self._remote = remote
        self._path = path
        self._connection = remote._least_written()
        self._file: Any = None
        self._ours = False
        """Whether what lies there may be taken away again: never an object that was there before."""

    def open(self) -> None:
        """Begin. Raises StoreFailed for an object that is there."""
        mode = self._remote._mode
        if not mode and self._remote.exists(self._path):
            raise StoreFailed("File exists")
        self._connection.writers += 1
        try:
            self._file = self._do(lambda fs: fs.open(self._path, mode or "wb"), again=True)
        except DriverError:
            self._connection.writers -= 1
            self._ours = not mode  # we looked: what is there now was made by this call
            raise
        # what refuses at the end shows nothing before it; if the end fails, what is there may be older
        self._ours = not mode or not _shown_at_close(self._file)

    def write(self, piece: Buffer) -> None:
        """Add a piece."""
        self._do(lambda _: write_piece(self._file, piece))

    def close(self) -> None:
        """End it: only now some filesystems show it, or refuse it. A failure is final."""
        self._do(lambda _: self._file.close())
        self._ended()

    def abandon(self) -> None:
        """Take away what was written, as far as the place lets us: a rest is found by fsck."""
        file = self._file
        if file is not None:
            drop = _give_up(file)
            try:
                self._do(lambda _: drop())
            except DriverError:
                pass
            self._ended()
        if self._ours:
            try:
                self._remote.remove(self._path)
            except DriverError:
                pass

    def _do(self, work: Callable[[Any], T], *, again: bool = False) -> T:
        try:
            with self._remote._held(self._connection) as fs:
                return work(fs)
        except Exception as error:
            if not again or not isinstance(error, Broken):
                raise translated(error) from error
        return self._do(work)

    def _ended(self) -> None:
        self._file = None
        self._connection.writers -= 1


def _shown_at_close(file: Any) -> bool:
    from fsspec.spec import AbstractBufferedFile

    return isinstance(file, AbstractBufferedFile)


def _give_up(file: Any) -> Callable[[], object]:
    """What frees a file so that no object comes to be, where closing it would make one."""
    if _shown_at_close(file):  # closing it sends the last block, and so does the collector of garbage
        file.closed = True
        discard: Callable[[], object] = file.discard
        return discard
    close: Callable[[], object] = file.close
    return close
