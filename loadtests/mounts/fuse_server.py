"""The process of a mount: FUSE with its operations, costs, faults and control."""

from __future__ import annotations

import ctypes.util
import errno
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.mounts.bandwidth import be_punctual
from sluice_s3.loadtests.mounts.control import Control
from sluice_s3.loadtests.mounts.faults import Fault, Faults
from sluice_s3.loadtests.mounts.guard import guard
from sluice_s3.loadtests.mounts.latency_model import Costs
from sluice_s3.loadtests.mounts.power_loss import Undo
from sluice_s3.loadtests.mounts.profiles import Profile, profile_named
from sluice_s3.loadtests.mounts.quirks import PERSONALITIES

THREADS = 256


class MountFailed(Exception):
    """FUSE is missing, or it refused us; the message is what it printed."""


@dataclass(frozen=True)
class Mounting:
    """What is mounted where, and how."""

    backing: Path
    where: Path
    profile: Profile
    personality: str = ""
    """The personality; empty: the profile's own."""
    faults: tuple[Fault, ...] = ()
    tracked: bool = False
    """Whether to store what a crash would restore."""
    big_writes: bool = True
    """Whether writes come in up to 1 MiB (libfuse 2: 128 KiB), else in 4 KiB."""
    cached: bool = True
    """Whether Linux may cache bytes; else every read and write comes here."""
    slower: float = 1.0
    """How many times as long each call takes."""
    control: Path | None = None

    @property
    def saved_directory(self) -> Path:
        """The directory beside the backing one that stores what a crash would restore."""
        root = Path(os.path.realpath(self.backing))
        return root.parent / f".kept-{root.name}-{os.getpid()}"

    def clean(self) -> None:
        """Remove what is needed only while it is mounted."""
        shutil.rmtree(self.saved_directory, ignore_errors=True)
        if self.control is not None:
            self.control.unlink(missing_ok=True)


def serve(mounting: Mounting) -> None:
    """Mount, and serve until it is unmounted. Raises MountFailed."""
    mfusepy = _mfusepy()
    costs, faults = Costs(mounting.profile), Faults(mounting.faults)
    personality = PERSONALITIES[mounting.personality or mounting.profile.personality]
    root = os.path.realpath(mounting.backing)
    undo = None
    if mounting.tracked:
        mounting.saved_directory.mkdir()
        if mounting.saved_directory.stat().st_dev != os.stat(root).st_dev:
            mounting.clean()
            raise MountFailed(f"{root} is a file system of its own: tracking wants a directory in one")
        undo = Undo(root, mounting.saved_directory)
    try:
        operations = personality(root, costs, undo)
        guard(operations, faults, undo, mounting.slower)
        if mounting.control is not None:
            Control(faults, costs, undo).listen(mounting.control)
        be_punctual()
        _many_descriptors()
        options = _options(mfusepy, mounting, personality.options)
        _class(mfusepy)(operations, str(mounting.where), foreground=True, fsname="sluice", **options)
    except RuntimeError as error:
        raise MountFailed(f"FUSE ended with {error}") from error
    finally:
        mounting.clean()


def end_with_parent(mounting: Mounting) -> None:
    """Unmount and end this process when its parent ends or closes our standard input.

    A parent that is killed while it hangs in this mount ends no sooner than the mount does.
    """
    parent = os.getppid()

    def watch() -> None:
        while not select.select([0], [], [], 1.0)[0] or os.read(0, 1024):
            if _is_ending(parent):
                break
        unmount(mounting.where)
        mounting.clean()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _is_ending(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return True
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    killed = int(fields["SigPnd"], 16) >> (signal.SIGKILL - 1) & 1
    return bool(killed) or fields["State"].split()[0] in "ZX"


def unmount(where: Path) -> None:
    """Unmount, even if processes still have files of it open."""
    if is_mounted(where):
        program = ["umount", "-l"] if os.geteuid() == 0 else [shutil.which("fusermount3") or "fusermount", "-uz"]
        subprocess.run([*program, str(where)], check=False, capture_output=True)


def is_mounted(where: Path) -> bool:
    """Return whether it is mounted, without a call to the mount.

    It is true for a mount that fails or hangs, too.
    """
    wanted = os.fsencode(os.path.join(os.path.realpath(where.parent), where.name))
    mounts = Path("/proc/self/mounts").read_bytes().splitlines()
    return any(line.split(b" ")[1].decode("unicode_escape").encode("latin1") == wanted for line in mounts)


def _mfusepy() -> Any:
    # libfuse 2 keeps ten threads that wait for work and creates the others each time
    newer = ctypes.util.find_library("fuse3")
    if newer is not None:
        os.environ.setdefault("FUSE_LIBRARY_PATH", newer)
    try:
        import mfusepy  # type: ignore[import-untyped]
    except (ImportError, OSError) as error:
        raise MountFailed(f"mfusepy and libfuse are wanted: {error}") from error
    return mfusepy


def _class(mfusepy: Any) -> Callable[..., Any]:
    class Fuse(mfusepy.FUSE):  # type: ignore[misc]
        def rename_fuse_3(self, old: bytes, new: bytes, flags: int) -> int:
            """Pass the flags on, which the library does not: RENAME_NOREPLACE would replace."""
            if flags:
                return -errno.EINVAL
            return int(super().rename_fuse_3(old, new, flags) or 0)

    return Fuse


def _options(mfusepy: Any, mounting: Mounting, personal: dict[str, Any]) -> dict[str, Any]:
    seconds = mounting.profile.cache_seconds
    # FUSE does not ask for the size at open as NFS does, so Linux asks often here, which is not always charged
    options: dict[str, Any] = {"entry_timeout": seconds, "attr_timeout": min(1.0, seconds), **personal}
    if not mounting.cached:
        options["direct_io"] = True
    if not mounting.big_writes:
        options["max_write"] = 4096
    if mfusepy.fuse_version_major == 3:
        options |= {"max_threads": THREADS, "max_idle_threads": THREADS}
    elif mounting.big_writes:
        options["big_writes"] = True
    if os.geteuid() == 0:
        options |= {"allow_other": True, "default_permissions": True}
    return options


def _many_descriptors() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    """Run what `Mount` starts in a process of its own; the argument is JSON."""
    arguments = json.loads(sys.argv[1])
    paths: dict[str, Any] = {name: Path(arguments.pop(name)) for name in ("backing", "where", "control")}
    profile = profile_named(arguments.pop("profile")).changed(arguments.pop("ms"))
    faults = tuple(Fault(**fault) for fault in arguments.pop("faults"))
    mounting = Mounting(**paths, profile=profile, faults=faults, **arguments)
    end_with_parent(mounting)
    try:
        serve(mounting)
    except MountFailed as error:
        raise SystemExit(str(error)) from error
