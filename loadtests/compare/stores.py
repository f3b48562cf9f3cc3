"""Where a target's bytes lie: a user's or a temporary directory, perhaps mounted."""

from __future__ import annotations

import ctypes.util
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from sluice_s3.loadtests.compare.plan import PlanError
from sluice_s3.loadtests.file_systems import PROGRAMS, mounted_by
from sluice_s3.loadtests.mounts.mount import mounted
from sluice_s3.loadtests.mounts.profiles import PROFILES
from sluice_s3.loadtests.mounts.quirks import PERSONALITIES
from sluice_s3.storage_drivers.mountinfo import mount_of

DRIVERS = ("local", "efs", "fuse")
NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,31}")
SLOWER = re.compile(r"slower=([1-9][0-9]{0,2}(?:\.[0-9]{1,3})?)")


@dataclass(frozen=True)
class Store:
    """A store in the directory `path`, or in a temporary one if `path` is empty.

    A temporary one lies under the mount that `kind` names: `local` (none), one of another project's file systems, or
    `mount`: one of `loadtests.mounts` with this profile and personality, whose calls take `slower` times as long.
    """

    name: str
    kind: str = "path"
    path: Path | None = None
    driver: str = ""
    profile: str = "none"
    personality: str = ""
    slower: float = 1.0


@dataclass(frozen=True)
class ProvisionedStore:
    """A store that is ready. `pid` is the process that serves its mount, or 0.

    `backing` is the directory below a temporary mount.
    """

    path: Path
    driver: str
    pid: int = 0
    backing: Path | None = None


def parse_store(text: str) -> Store:
    """Parse `NAME=PATH`, `NAME=PATH:DRIVER`, `NAME=PROFILE`, `NAME=PROFILE,slower=FACTOR` or `PROFILE`.

    Also parses `local`, `fuse`, personalities, and names of other projects' file systems. Raises PlanError.
    """
    name, equals, rest = text.partition("=")
    if not equals:
        rest = name
    if not NAME.fullmatch(name):
        raise PlanError(f"{text!r}: a name has small letters, digits, dots and dashes, 32 at most")
    if "/" not in rest:
        return _parse_kind(name, rest)
    path, _, driver = rest.rpartition(":") if rest.endswith(tuple(f":{one}" for one in DRIVERS)) else (rest, "", "")
    where = Path(path).expanduser()
    if not where.is_dir():
        raise PlanError(f"store {name}: {path} is no directory")
    if not os.access(where, os.W_OK | os.X_OK):
        raise PlanError(f"store {name}: {path} cannot be written to")
    return Store(name, "path", where.resolve(), driver)


def _parse_kind(name: str, text: str) -> Store:
    kind, comma, option = text.partition(",")
    store = _store_of_kind(name, kind)
    if not comma:
        return store
    found = SLOWER.fullmatch(option)
    if found is None:
        raise PlanError(f"store {name}: {option!r} is not slower=FACTOR, a number from 1 on")
    if store.kind != "mount":
        raise PlanError(f"store {name}: only a mount that is made here, as fuse or efs-004, can be slower")
    return replace(store, slower=float(found[1]))


def _store_of_kind(name: str, kind: str) -> Store:
    if kind == "local":
        return Store(name, "local", driver="local")
    if kind in PROGRAMS:
        if missing := PROGRAMS[kind].missing():
            raise PlanError(f"store {name}: {missing}")
        return Store(name, kind, driver="fuse")
    if kind == "fuse":
        return Store(name, "mount", driver="fuse")
    if kind in PROFILES:
        nfs = PROFILES[kind].personality == "nfs"
        return Store(name, "mount", driver="efs" if nfs else "fuse", profile=kind)
    if kind in PERSONALITIES:
        return Store(name, "mount", driver="efs" if kind == "nfs" else "fuse", personality=kind)
    known = ", ".join(("local", "fuse", *PROFILES, *PERSONALITIES, *PROGRAMS))
    raise PlanError(f"{kind!r} is neither a path (with a / in it) nor one of {known}")


def can_mount() -> bool:
    """Return whether temporary mounts are likely to work here."""
    library = ctypes.util.find_library("fuse3") or ctypes.util.find_library("fuse")
    return library is not None and find_spec("mfusepy") is not None and os.access("/dev/fuse", os.R_OK | os.W_OK)


@contextmanager
def provision(store: Store, parent: Path) -> Iterator[ProvisionedStore]:
    """Provide an empty directory of the store until the end of the block.

    Raises MountFailed, OSError.
    """
    if store.path is not None:
        directory = Path(tempfile.mkdtemp(prefix="sluice-bench-", dir=store.path))
        try:
            yield ProvisionedStore(directory, store.driver or mount_of(directory).driver)
        finally:
            _remove(directory)
        return
    work = Path(tempfile.mkdtemp(prefix=f"sluice-bench-{store.name}-", dir=parent))
    try:
        if store.kind in PROGRAMS:
            with mounted_by(PROGRAMS[store.kind], work) as mount:
                yield ProvisionedStore(mount.path, store.driver, mount.pid)
            return
        backing, where = work / "backing", work / "mount"
        backing.mkdir()
        where.mkdir()
        if store.kind == "local":
            yield ProvisionedStore(backing, "local")
        else:
            with mounted(
                backing, where, profile=store.profile, personality=store.personality, slower=store.slower
            ) as costly:
                yield ProvisionedStore(where, store.driver, costly.pid, backing)
    finally:
        _remove(work)


def _remove(directory: Path) -> None:
    """Remove the directory.

    A second try takes what a just killed server still created.
    """
    for _ in range(3):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        time.sleep(0.2)
