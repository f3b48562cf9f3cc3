"""Filesystems of fsspec that fail when they are told to, or that show an object only once it is closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fsspec
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

CALLS = ("open", "cat_file", "info", "ls", "rm_file", "makedirs")


class Faults:
    """`error` is raised by the call number `nth` from now on, and by all after it when `lasting`."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.set(0, None)

    def set(self, nth: int, error: Exception | None, *, lasting: bool = False) -> None:
        self._left, self._error, self._lasting = nth, error, lasting
        self.calls: list[str] = []

    @property
    def struck(self) -> bool:
        return self._error is not None and len(self.calls) >= self._left

    def step(self, name: str) -> None:
        self.calls.append(name)
        if self._error is not None and (
            len(self.calls) == self._left or (self._lasting and len(self.calls) > self._left)
        ):
            raise self._error


FAULTS = Faults()


class FaultyFile:
    """A file whose writes and whose close may fail."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, piece: bytes) -> int:
        FAULTS.step("write")
        return int(self._file.write(piece))

    def close(self) -> None:
        FAULTS.step("close")
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> FaultyFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _counted(name: str) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        FAULTS.step(name)
        found = getattr(MemoryFileSystem, name)(self, *arguments, **options)
        return FaultyFile(found) if name == "open" else found

    return call


class FaultyFileSystem(MemoryFileSystem):
    """Memory, with faults."""

    protocol = "faulty"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = MemoryFileSystem._strip_protocol(path.removeprefix("faulty://"))
        return stripped


for _name in CALLS:
    setattr(FaultyFileSystem, _name, _counted(_name))


class LateFile(AbstractBufferedFile):  # type: ignore[misc]
    """Sends parts of 100,000 bytes and shows nothing before the last."""

    DEFAULT_BLOCK_SIZE = 100_000

    def _initiate_upload(self) -> None:
        self.sent: list[bytes] = []

    def _upload_chunk(self, final: bool = False) -> bool:
        FAULTS.step("part")
        self.sent.append(self.buffer.getvalue())
        if final:
            FAULTS.step("publish")
            if self.fs.refuses and "x" in self.mode and self.path in self.fs.objects:
                raise FileExistsError(self.path)
            self.fs.objects[self.path] = b"".join(self.sent)
        return True

    def discard(self) -> None:
        FAULTS.step("discard")
        self.buffer = None

    def _fetch_range(self, start: int, end: int) -> bytes:
        found: bytes = self.fs.objects[self.path][start:end]
        return found


class LateFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """An object store: no directories, no exclusive create, objects that are there when they are whole."""

    protocol = "late"
    refuses = False
    objects: dict[str, bytes] = {}

    def _open(self, path: str, mode: str = "rb", **options: Any) -> LateFile:
        return LateFile(self, path, mode, block_size=LateFile.DEFAULT_BLOCK_SIZE)

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if path not in self.objects:
            raise FileNotFoundError(path)
        return {"name": path, "size": len(self.objects[path]), "type": "file"}

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        path = self._strip_protocol(path).rstrip("/") + "/"
        found = [self.info(name) for name in self.objects if name.startswith(path) and "/" not in name[len(path) :]]
        if not found:
            raise FileNotFoundError(path)
        return found if detail else [entry["name"] for entry in found]

    def find(self, path: str, **options: Any) -> list[str]:
        path = self._strip_protocol(path).rstrip("/") + "/"
        return sorted(name for name in self.objects if name.startswith(path))

    def _rm(self, path: str) -> None:
        FAULTS.step("rm")
        self.objects.pop(self._strip_protocol(path), None)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        pass


class RefusingFileSystem(LateFileSystem):
    """An object store that knows If-None-Match: it refuses what is there, but only at the end."""

    protocol = "refusing"
    refuses = True


fsspec.register_implementation("faulty", FaultyFileSystem, clobber=True)
fsspec.register_implementation("late", LateFileSystem, clobber=True)
fsspec.register_implementation("refusing", RefusingFileSystem, clobber=True)
