"""What is known of a FUSE file system of another project: what it needs, and the command that serves it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

SYSTEM_PATHS = ("/usr/sbin", "/sbin")
"""Where `mkfs` lies, also for users whose PATH does not name it."""


@dataclass(frozen=True)
class Place:
    """Where a file system keeps its bytes, and where it is mounted."""

    work: Path
    """A directory for keys, settings, images."""
    behind: Path
    """A directory for the bytes."""
    where: Path
    """The mount point, empty."""


@dataclass(frozen=True)
class Served:
    """A command that mounts and serves until it is unmounted, with its environment and its input."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""


def nothing_behind(_: Place) -> AbstractContextManager[object]:
    """Start nothing: the bytes lie in a directory."""
    return nullcontext()


@dataclass(frozen=True)
class Program:
    """A file system.

    `behind` starts what must run behind it for as long as its bytes are wanted; `prepare` makes it once, from what
    `behind` gave; `serve` says how it is mounted, each time.
    """

    name: str
    package: str
    """Where it comes from: a package of Debian, or a sentence."""
    needs: tuple[str, ...]
    """Programs that must be installed."""
    about: str
    """A sentence: what lies behind, and which options were chosen."""
    serve: Callable[[Place], Served]
    prepare: Callable[[Place], None] = lambda place: place.behind.mkdir(exist_ok=True)
    behind: Callable[[Place], AbstractContextManager[object]] = nothing_behind
    version: tuple[str, ...] = ()
    """The command that prints its version; empty: the first of `needs` with `--version`."""
    root: bool = False
    """Whether only root can mount it."""

    def missing(self) -> str:
        """Return why it cannot be used here; empty if it can."""
        absent = [name for name in self.needs if find_program(name) is None]
        if absent:
            return f"not installed: {', '.join(absent)} ({self.package})"
        if self.root and os.geteuid() != 0:
            return "only root can mount it"
        return "" if os.access("/dev/fuse", os.R_OK | os.W_OK) else "this machine has no /dev/fuse for us"


def find_program(name: str) -> str | None:
    """Return the path of a program, also of one that only root has in its PATH."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_PATHS)))
