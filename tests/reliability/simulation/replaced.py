"""What the programs call instead of the system: files, locks of files, clocks, threads, random numbers, SQLite's files.

Install before the programs are imported: some of them keep what they imported.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import queue
import random
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable
from typing import Any

import apsw

from tests.reliability.simulation import scheduler
from tests.reliability.simulation.disk import Disk, File
from tests.reliability.simulation.scheduler import Process, Simulation, running


class Mount:
    """The disk of the trial."""

    disk: Disk | None = None


real: dict[str, Any] = {
    name: getattr(os, name) for name in ("open", "close", "write", "pwrite", "pwritev", "unlink", "rename", "urandom")
}
flock = fcntl.flock


def _require_alive() -> None:
    if Simulation.scheduler is not None:
        running().require_alive()


def _sync(fd: int) -> None:
    _require_alive()
    if Simulation.scheduler is not None and Mount.disk is not None and fd in Mount.disk.fds:
        running().sleep(running().random.choice((0.0002, 0.001, 0.005)))
        found = Mount.disk.fds[fd]
        if isinstance(found, File):
            found.sync()
        else:
            Mount.disk.sync_directory(found)


def _open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    disk = Mount.disk
    held = disk is not None and dir_fd is None and disk.holds(path)
    if held:
        running().pause()
    _require_alive()
    fd = int(real["open"](path, flags, mode, dir_fd=dir_fd))
    if Simulation.scheduler is not None:
        running().current.process.fds.add(fd)
    if held and disk is not None:
        disk.fds[fd] = str(path) if os.path.isdir(path) else disk.file(str(path))
    return fd


def _close(fd: int) -> None:
    if Mount.disk is not None:
        Mount.disk.fds.pop(fd, None)
    if Simulation.scheduler is not None:
        running().current.process.fds.discard(fd)
    real["close"](fd)


def kill(process: Process) -> None:
    """End a process, and close what it has open, so that its locks are free."""
    running().kill(process)
    for connection in list(process.connections):
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close(True)
    for fd in list(process.fds):
        process.fds.discard(fd)
        _close(fd)


def _written(fd: int, offset: int, data: bytes) -> None:
    if Mount.disk is not None and isinstance(file := Mount.disk.fds.get(fd), File):
        file.write(offset, data)
        running().pause()


def _write(fd: int, data: Any) -> int:
    _require_alive()
    tracked = Mount.disk is not None and fd in Mount.disk.fds
    offset = os.lseek(fd, 0, os.SEEK_CUR) if tracked else 0
    done = int(real["write"](fd, data))
    _written(fd, offset, bytes(data[:done]))
    return done


def _pwrite(fd: int, data: Any, offset: int) -> int:
    _require_alive()
    done = int(real["pwrite"](fd, data, offset))
    _written(fd, offset, bytes(data[:done]))
    return done


def _pwritev(fd: int, buffers: Any, offset: int, flags: int = 0) -> int:
    _require_alive()
    done = int(real["pwritev"](fd, buffers, offset, flags))
    _written(fd, offset, b"".join(map(bytes, buffers))[:done])
    return done


def _unlink(path: Any, *, dir_fd: int | None = None) -> None:
    _require_alive()
    real["unlink"](path, dir_fd=dir_fd)
    if Mount.disk is not None and dir_fd is None and Mount.disk.holds(path):
        Mount.disk.remove(str(path))
        running().pause()


def _rename(path: Any, target: Any) -> None:
    _require_alive()
    real["rename"](path, target)
    if Mount.disk is not None and Mount.disk.holds(path):
        Mount.disk.rename(str(path), str(target))


def _flock(fd: int, operation: int) -> None:
    if Simulation.scheduler is None or operation & (fcntl.LOCK_NB | fcntl.LOCK_UN):
        flock(fd, operation)
        return
    while True:
        running().pause()
        try:
            flock(fd, operation | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            running().sleep(0.0003)


class SimulatedFile(apsw.VFSFile):
    """A file of SQLite on the simulated disk."""

    def __init__(self, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self._path = path if Mount.disk is not None and Mount.disk.holds(path) else ""
        self._file = Mount.disk.file(path) if self._path and Mount.disk is not None else None

    def xWrite(self, data: Any, offset: int) -> None:
        _require_alive()
        super().xWrite(data, offset)
        if self._file is not None:
            self._file.write(offset, bytes(data))
            running().pause()

    def xTruncate(self, size: int) -> None:
        _require_alive()
        super().xTruncate(size)
        if self._file is not None:
            self._file.truncate(size)

    def xSync(self, flags: int) -> None:
        _require_alive()
        if self._file is not None and Mount.disk is not None:
            running().sleep(running().random.choice((0.0002, 0.001, 0.005)))
            self._file.sync()
            Mount.disk.sync_directory(os.path.dirname(self._path))


class SimulatedConnection(apsw.Connection):
    """A connection that its process loses when it is killed."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if Simulation.scheduler is not None:
            self._of = running().current.process.connections
            self._of.append(self)

    def close(self, force: bool = False) -> None:
        if self in (of := getattr(self, "_of", [])):
            of.remove(self)
        super().close(force)


class SimulatedFiles(apsw.VFS):
    """SQLite's files, its sleep and its random numbers."""

    def __init__(self) -> None:
        super().__init__("simulated", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> SimulatedFile:
        return SimulatedFile(name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        _require_alive()
        super().xDelete(filename, syncdir)
        if Mount.disk is not None and Mount.disk.holds(filename):
            Mount.disk.remove(filename)

    def xSleep(self, microseconds: int) -> int:
        if Simulation.scheduler is not None:
            running().sleep(microseconds / 1e6)
        return microseconds

    def xRandomness(self, numbytes: int) -> bytes:
        return _urandom(numbytes)


def _urandom(size: int) -> bytes:
    return real["urandom"](size) if Simulation.scheduler is None else running().random.randbytes(size)


def _clock(name: str, origin: float) -> Callable[..., Any]:
    other = getattr(time, name)
    scale = 1_000_000_000 if name.endswith("_ns") else 1

    def read(*arguments: Any) -> Any:
        if Simulation.scheduler is None:
            return other(*arguments)
        seconds = running().now - origin + (0 if origin else running().clock_error)
        return int(seconds * scale) if scale > 1 else seconds

    return read


class _Thread(threading.Thread):
    """A simulated thread within a trial."""

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        if Simulation.scheduler is not None and cls is _Thread:
            return scheduler.Thread(*arguments, **options)
        return super().__new__(cls)


def _start_new_thread(run: Callable[..., None], arguments: tuple[Any, ...]) -> int:
    """A simulated thread within a trial."""
    if Simulation.scheduler is None:
        return start_new_thread(run, arguments)
    running().start(lambda: run(*arguments))
    return 0


def install() -> SimulatedFiles:
    """Replace them, for the rest of the process."""
    own = {
        "open": _open,
        "close": _close,
        "write": _write,
        "pwrite": _pwrite,
        "pwritev": _pwritev,
        "fsync": _sync,
        "fdatasync": _sync,
    }
    own |= {"unlink": _unlink, "remove": _unlink, "rename": _rename, "replace": _rename, "urandom": _urandom}
    for name, function in own.items():
        setattr(os, name, function)
    vars(fcntl)["flock"] = _flock
    vars(apsw)["Connection"] = SimulatedConnection
    for name in ("time", "time_ns"):
        setattr(time, name, _clock(name, 0))
    for name in ("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "clock_gettime", "clock_gettime_ns"):
        setattr(time, name, _clock(name, scheduler.BEGIN - 1000))
    vars(random)["_urandom"] = _urandom
    vars(threading)["Lock"] = scheduler.Lock
    vars(threading)["Event"] = scheduler.Event
    vars(threading)["Condition"] = scheduler.Condition
    vars(threading)["Thread"] = _Thread
    vars(queue)["SimpleQueue"] = scheduler.SimpleQueue
    vars(importlib.import_module("sluice_s3.storage_drivers.threads"))["start_new_thread"] = _start_new_thread
    return SimulatedFiles()
