"""A simulated disk: what a power cut leaves of the files below a directory.

Programs work on real files in memory. Beside each file stands what is durable: bytes by fsync(2) of the file, names by
fsync(2) of the directory, and nothing else. A power cut keeps any part of the rest, in any order: pages of 4 KiB that
were written and not synced, and names that were created or removed and not synced, each by its own lot.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

PAGE = 4096


class File:
    """A file: its durable bytes, and what was written since."""

    def __init__(self, durable: bytes = b"") -> None:
        self.durable = durable
        self.content = bytearray(durable)
        self.pending: list[tuple[int, bytes] | int] = []
        """Writes at an offset, and sizes to which it was truncated."""

    def write(self, offset: int, data: bytes) -> None:
        self._apply(self.content, offset, data)
        while data:
            size = PAGE - offset % PAGE
            self.pending.append((offset, data[:size]))
            offset, data = offset + size, data[size:]

    def truncate(self, size: int) -> None:
        self._resize(self.content, size)
        self.pending.append(size)

    def sync(self) -> None:
        if self.pending:
            self.durable = bytes(self.content)
            self.pending = []

    def after_power_cut(self, survives: Callable[[], bool]) -> bytes:
        left = bytearray(self.durable)
        for change in self.pending:
            if not survives():
                continue
            if isinstance(change, int):
                self._resize(left, change)
            else:
                self._apply(left, *change)
        return bytes(left)

    @staticmethod
    def _apply(content: bytearray, offset: int, data: bytes) -> None:
        if len(content) < offset:
            content.extend(bytes(offset - len(content)))
        content[offset : offset + len(data)] = data

    @staticmethod
    def _resize(content: bytearray, size: int) -> None:
        del content[size:]
        content.extend(bytes(size - len(content)))


class Change(NamedTuple):
    """A name that came to stand for a file, or for none."""

    name: str
    file: File | None


class Disk:
    """The files below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = f"{root}/"
        self.names: dict[str, File] = {}
        self.durable: dict[str, File] = {}
        self.pending: dict[str, list[Change]] = {}
        """By directory, changes of its names that are not durable."""
        self.fds: dict[int, File | str] = {}
        """Open files, and directories by their path."""
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.is_symlink():
                self.names[str(path)] = self.durable[str(path)] = File(path.read_bytes())

    def holds(self, path: Any) -> bool:
        return str(path).startswith(self.root)

    def file(self, path: str) -> File:
        """Return the file of a name, which is new if there is none."""
        if path not in self.names:
            self._change(path, File())
        return self.names[path]

    def remove(self, path: str) -> None:
        if path in self.names:
            self._change(path, None)

    def rename(self, path: str, target: str) -> None:
        file = self.names[path]
        self._change(target, file)
        self._change(path, None)

    def _change(self, path: str, file: File | None) -> None:
        if file is None:
            del self.names[path]
        else:
            self.names[path] = file
        self.pending.setdefault(os.path.dirname(path), []).append(Change(path, file))

    def sync_directory(self, path: str) -> None:
        for name, file in self.pending.pop(path.rstrip("/"), []):
            _set(self.durable, name, file)

    def cut_power(self, random: Random, target: Path) -> None:
        """Write what is left to `target`, a copy of the directories."""
        share = random.choice((0.0, 0.5, 0.5, 0.9, 1.0))

        def survives() -> bool:
            return random.random() < share

        left = dict(self.durable)
        for changes in self.pending.values():
            lost: set[str] = set()
            for name, file in changes:
                if name not in lost and survives():
                    _set(left, name, file)
                else:
                    lost.add(name)  # what came later to this name is lost, too
        for name, file in left.items():
            place = target / name.removeprefix(self.root)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.after_power_cut(survives))
            place.chmod(0o600)


def _set(names: dict[str, File], name: str, file: File | None) -> None:
    if file is None:
        names.pop(name, None)
    else:
        names[name] = file
