"""An fsspec filesystem as a store uses it: create, read, list and remove objects.

All calls block. Only this module turns the errors of such a filesystem into DriverError. Filesystems are not
thread-safe: each connection here has a lock and, if the filesystem has state, an instance of its own.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

from sluice_s3.storage_drivers.base import Buffer
from sluice_s3.storage_drivers.errors import DriverError, StoreFailed, map_errors
from sluice_s3.storage_drivers.fsspec.sftp import (
    is_alive,
    make_directory,
    options_for,
    prepare_channel,
    read_range,
    write_piece,
)

T = TypeVar("T")

THREAD_SAFE = frozenset({"memory", "file", "local"})
"""Protocols whose filesystem has no state between calls, beside those with a loop of their own."""
EXCLUSIVE = ("xb", "wxb")
"""Modes of an open that refuses existing files; paramiko needs the second."""
INSTALL = "the driver fsspec needs a package that is not installed: pip install 'sluice-s3[fsspec]'"

logger = logging.getLogger("sluice.store")


class ConnectionBroken(Exception):
    """The connection is unusable. The cause is what the filesystem raised."""


def map_fsspec_errors(error: BaseException, committed: str = "") -> DriverError:
    """Return the DriverError for a filesystem's error.

    `committed` names a blob that must exist.
    """
    if isinstance(error, ConnectionBroken) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, DriverError):
        return error
    if isinstance(error, FileNotFoundError):
        error = FileNotFoundError(errno.ENOENT, "")  # some have no errno
    try:
        with map_errors(committed):
            raise error
    except DriverError as mapped:
        return mapped
    except Exception as other:
        return StoreFailed(type(other).__name__)


class _Connection:
    """One instance of the filesystem. Its user holds its lock."""

    __slots__ = ("fs", "lock", "writers")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.fs: Any = None
        self.writers = 0
        """Objects that are being written over it."""


class FsspecClient:
    """The place at a URL, with up to `connections` connections to it.

    `options` go to the filesystem. It connects at the first call. Every method may be called in any thread, and raises
    DriverError.
    """

    def __init__(self, url: str, options: dict[str, Any], connections: int) -> None:
        self._url = url
        self._options = options
        self._connections = [_Connection() for _ in range(max(1, connections))]
        self._connecting = threading.Lock()
        self._shared: Any = None
        self._slots = count()
        self._root: str | None = None
        self._mode = ""

    # connections
    def _open(self) -> Any:
        """Create a new instance, one at a time.

        An ssh server drops clients that come all at once.
        """
        try:
            from fsspec.core import url_to_fs  # an extra: only users of this driver have it
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
            if cache is not None:  # objects of other processes must be visible
                cache.use_listings_cache = False
            prepare_channel(fs)
            if fs.async_impl or THREAD_SAFE.intersection(
                [fs.protocol] if isinstance(fs.protocol, str) else fs.protocol
            ):
                self._shared = fs
            self._root = str(root).rstrip("/")
            return fs

    @contextmanager
    def _locked(self, connection: _Connection) -> Iterator[Any]:
        """Lend a connection's filesystem for one call.

        If the connection breaks, the next call makes a new one.
        """
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
                    raise ConnectionBroken from error
                raise

    def _free(self) -> _Connection:
        """Return an idle connection if any, the first ones first, so that few are opened."""
        for connection in self._connections:
            if not connection.lock.locked():
                return connection
        return self._connections[next(self._slots) % len(self._connections)]

    def _call(self, work: Callable[[Any], T], committed: str = "", *, again: bool = False) -> T:
        """Do some work with a filesystem.

        With `again` it may be repeated on another connection if one breaks.
        """
        try:
            with self._locked(self._free()) as fs:
                return work(fs)
        except Exception as error:
            if not again or not isinstance(error, ConnectionBroken):
                raise map_fsspec_errors(error, committed) from error
        return self._call(work, committed)

    def close(self) -> None:
        """Close all connections; a later call opens new ones."""
        for connection in self._connections:
            fs, connection.fs = connection.fs, None
            client = getattr(fs, "client", None)
            if client is not None:
                client.close()

    @property
    def root(self) -> str:
        """The prefix of all paths. The first use connects."""
        if self._root is None:
            self._call(lambda fs: None)
            assert self._root is not None
        return self._root

    # objects
    def probe(self, path: str) -> bool:
        """Return whether objects can be created exclusively, by a test at `path`.

        The test object is removed. If nothing can be created at all, as on a full place, the answer is no, and stored
        objects stay readable.
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
                with fs.open(path, mode) as file:  # object stores refuse at the close, and not an empty one
                    file.write(b"second")
            except (NotImplementedError, ValueError):
                return False
            except OSError as error:
                return isinstance(error, FileExistsError) or error.errno in (errno.EEXIST, None)
            return False

        return self._call(twice) and self._makes(f"{path}.{mode}", mode)

    def _makes(self, path: str, mode: str) -> bool:
        """Return whether an open in that mode returns a writable file at all."""

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
        """Create an object of a few bytes; an existing one is refused."""
        made = NewObject(self, path)
        try:
            made.open()
            made.write(content)
            made.close()
        except BaseException:
            made.abandon()
            raise

    def read(self, path: str, start: int, end: int, committed: str = "") -> bytes:
        """Return bytes of an object from `start` up to `end`; fewer at its end."""
        return bytes(self._call(lambda fs: read_range(fs, path, start, end), committed, again=True))

    def size(self, path: str, committed: str = "") -> int:
        """Return the bytes of an object."""

        def ask(fs: Any) -> int:
            found = fs.info(path)
            if found["type"] != "file":
                raise StoreFailed("there is something else in an object's place")
            return int(found["size"])

        return self._call(ask, committed, again=True)

    def exists(self, path: str) -> bool:
        """Return whether there is anything at a path."""

        def ask(fs: Any) -> bool:
            try:
                fs.info(path)
            except FileNotFoundError:
                return False
            return True

        return self._call(ask, again=True)

    def remove(self, path: str) -> bool:
        """Remove an object; return False when it was missing (if the filesystem reports that)."""

        def take_away(fs: Any) -> bool:
            try:
                fs.rm_file(path)
            except FileNotFoundError:
                return False
            return True

        return self._call(take_away, again=True)

    def list(self, path: str) -> list[tuple[str, int]]:
        """Return name and bytes of every object directly below a path.

        The list is empty if there is no such place.
        """

        def ask(fs: Any) -> list[tuple[str, int]]:
            try:
                entries = fs.ls(path, detail=True)
            except FileNotFoundError:
                return []
            files = (entry for entry in entries if entry["type"] == "file" and not entry.get("islink"))
            return [(str(entry["name"]).rpartition("/")[2], int(entry["size"] or 0)) for entry in files]

        return self._call(ask, again=True)

    def make_directory(self, path: str) -> None:
        """Create a directory, if the place has directories; an existing one is no error."""
        self._call(lambda fs: make_directory(fs, path), again=True)

    def _least_written(self) -> _Connection:
        return min(self._connections, key=lambda connection: connection.writers)


class NewObject:
    """One object during its write.

    Steps are called one at a time, in any thread; no step waits for the next one.
    """

    __slots__ = ("_connection", "_file", "_ours", "_path", "_remote")

    def __init__(self, remote: FsspecClient, path: str) -> None:
        self._remote = remote
        self._path = path
        self._connection = remote._least_written()
        self._file: Any = None
        self._ours = False
        """Whether the object there may be removed: never one that existed before."""

    def open(self) -> None:
        """Begin. Raises StoreFailed for an existing object."""
        mode = self._remote._mode
        if not mode and self._remote.exists(self._path):
            raise StoreFailed("File exists")
        self._connection.writers += 1
        try:
            self._file = self._do(lambda fs: fs.open(self._path, mode or "wb"), again=True)
        except DriverError:
            self._connection.writers -= 1
            self._ours = not mode  # checked before: this call created what is there now
            raise
        # A filesystem that refuses at the end shows nothing before it; if the end fails, the object there may be older.
        self._ours = not mode or not _shown_at_close(self._file)

    def write(self, piece: Buffer) -> None:
        """Append a piece."""
        self._do(lambda _: write_piece(self._file, piece))

    def close(self) -> None:
        """Close the object: some filesystems show or refuse it only now. A failure is final."""
        self._do(lambda _: self._file.close())
        self._ended()

    def abandon(self) -> None:
        """Remove what was written, as far as the place allows: fsck finds the rest."""
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
            with self._remote._locked(self._connection) as fs:
                return work(fs)
        except Exception as error:
            if not again or not isinstance(error, ConnectionBroken):
                raise map_fsspec_errors(error) from error
        return self._do(work)

    def _ended(self) -> None:
        self._file = None
        self._connection.writers -= 1


def _shown_at_close(file: Any) -> bool:
    from fsspec.spec import AbstractBufferedFile

    return isinstance(file, AbstractBufferedFile)


def _give_up(file: Any) -> Callable[[], object]:
    """Return a function that frees a file without the object that closing creates."""
    if _shown_at_close(file):  # a close sends the last block, and so does Python's garbage collector
        file.closed = True
        discard: Callable[[], object] = file.discard
        return discard
    close: Callable[[], object] = file.close
    return close
