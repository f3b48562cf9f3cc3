"""The workloads of the published experiments, by plain calls.

Writing and reading files, a source tree, many threads.
"""

from __future__ import annotations

import os
import random
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

CHUNK = 1 << 20
BODY = os.urandom(CHUNK)
FOLD = 64 * CHUNK
"""Longer files are overwritten in this many bytes, to save disk space."""
FILES, DIRECTORIES, TOTAL, LARGEST = 54_000, 3_657, 726_000_000, 2_000_000


def write(path: Path, size: int) -> float:
    """Create a file, write and close it. Returns seconds."""
    body = memoryview(BODY)
    started = time.perf_counter()
    fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    for offset in range(0, size, CHUNK):
        os.pwrite(fd, body[: min(CHUNK, size - offset)], offset % FOLD)
    os.close(fd)
    return time.perf_counter() - started


def read(path: Path) -> float:
    """Open, read and close a file. Returns seconds."""
    buffer = bytearray(CHUNK)
    started = time.perf_counter()
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    while os.readv(fd, [buffer]):
        pass
    os.close(fd)
    return time.perf_counter() - started


def forget(path: Path) -> None:
    """Have Linux drop the cached bytes of a file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def together(threads: int, seconds: float, once: Callable[[int, int], int]) -> float:
    """Run `once(thread, turn)` in threads until the time is over. Returns bytes a second.

    `once` returns bytes. A turn that is under way at the end counts by its share of the time.
    """
    moved = [0.0] * threads
    begin = threading.Barrier(threads + 1)

    def work(number: int) -> None:
        turn = 0
        begin.wait()
        deadline = time.perf_counter() + seconds
        while True:
            began = time.perf_counter()
            count = once(number, turn)
            ended = time.perf_counter()
            if ended >= deadline:
                moved[number] += count * max(0.0, deadline - began) / (ended - began)
                return
            moved[number] += count
            turn += 1

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    begin.wait()
    for thread in running:
        thread.join()
    return sum(moved) / seconds


@dataclass(frozen=True)
class Tree:
    """Files of a source tree: names relative to its top, and sizes.

    Directories come before their content.
    """

    directories: tuple[str, ...]
    files: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return sum(size for _, size in self.files)


def linux_tree(share: float = 1.0, seed: int = 1) -> Tree:
    """Return a tree like that of Linux 4.7.2, or a share of it.

    It has 54,000 files in 3,657 directories, 726 MB, and no file above 2 MB.
    """
    chance = random.Random(seed)
    count, directories = round(FILES * share), ["linux"]
    for number in range(1, max(2, round(DIRECTORIES * share))):
        # three levels below the top are the most common
        above = chance.choice([one for one in directories[-200:] + directories[:20] if one.count("/") < 5])
        directories.append(f"{above}/d{number}")
    raw = [chance.lognormvariate(8.5, 1.42) for _ in range(count)]
    scale = TOTAL * share / sum(raw)
    sizes = [min(LARGEST, max(1, int(one * scale))) for one in raw]
    return Tree(
        tuple(directories),
        tuple((f"{chance.choice(directories)}/f{number}.c", size) for number, size in enumerate(sizes)),
    )


def make_tree(tree: Tree, where: Path) -> None:
    """Create the tree as files."""
    body = os.urandom(LARGEST)
    for directory in tree.directories:
        (where / directory).mkdir()
    for name, size in tree.files:
        (where / name).write_bytes(body[:size])


def unpack(tree: Tree, where: Path) -> float:
    """Have tar unpack the tree. Returns seconds."""
    with tempfile.TemporaryDirectory(prefix="sluice-tree-") as made:
        archive = Path(made) / "tree.tar"
        _pack(tree, archive)
        started = time.perf_counter()
        subprocess.run(["tar", "xf", str(archive), "-C", str(where)], check=True)
        return time.perf_counter() - started


def _pack(tree: Tree, archive: Path) -> None:
    by_directory: dict[str, list[tuple[str, int]]] = {}
    for name, size in tree.files:
        by_directory.setdefault(os.path.dirname(name), []).append((name, size))
    body = os.urandom(LARGEST)
    with tarfile.open(archive, "w") as made:
        for directory in sorted(tree.directories):
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o775, 1_471_000_000
            made.addfile(entry)
            for name, size in by_directory.get(directory, []):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode, entry.mtime = size, 0o664, 1_471_000_000
                made.addfile(entry, BytesIO(body[:size]))


def read_tree(tree: Tree, where: Path, reads: int, threads: int = 16, seed: int = 2) -> float:
    """Read files of the tree by threads, 80 % of the reads from a fifth of the files.

    Returns bytes a second.
    """
    chance = random.Random(seed)
    names = [name for name, _ in tree.files]
    chance.shuffle(names)
    fifth = len(names) // 5
    chosen = [chance.choice(names[:fifth] if chance.random() < 0.8 else names[fifth:]) for _ in range(reads)]
    sizes = dict(tree.files)

    def work(number: int) -> None:
        for name in chosen[number::threads]:
            read(where / name)

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    started = time.perf_counter()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sum(sizes[name] for name in chosen) / (time.perf_counter() - started)
