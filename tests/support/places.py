"""Kinds of places that a store may lie on, made for a test and taken down after it.

SLUICE_TEST_PLACE names the one that the functional tests and the kill tests run on; `make places` goes through them.
`make soak` runs the functional tests on all of `USUAL`; `make test` runs each where it tells something (`kinds_for`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.loadtests.file_systems import PROGRAMS, mounted_by
from sluice_s3.loadtests.mounts import PROFILES, Mount, mounted
from sluice_s3.storage_drivers.mountinfo import mount_of
from sluice_s3.storage_drivers.probing.known_mounts import sync_refusal
from tests.support import postgres
from tests.support.environment import SIZE, need, need_fuse, need_root

CHOSEN = os.environ.get("SLUICE_TEST_PLACE", "here")
USUAL = (CHOSEN,) if "SLUICE_TEST_PLACE" in os.environ else ("here", "postgres", "tree", "zdbfs", "memory")


def kinds_for(marker: pytest.Mark | None, usual: tuple[str, ...] = USUAL) -> list[str]:
    """Return the kinds of places for a test: the first of `usual`, and those that its marker `place` names.

    A marker without names stands for all of them. At the size of soak every test runs on every kind.
    """
    if SIZE == "soak":
        return list(usual)
    named = () if marker is None else marker.args or usual
    return [kind for kind in usual if kind == usual[0] or kind in named]


@dataclass
class Place:
    """Where the one store of a gateway lies, as the settings of a store say it; the index is always on a local disk."""

    store: dict[str, Any] = field(default_factory=dict)
    """Empty: in the gateway's own directory, beside the index."""
    workers: int | None = None
    """As many as the store allows, None for any number."""
    cut: Callable[[], None] | None = None
    """Cut the power under it, where that can be done; what was not synced is gone after `restore`."""
    in_postgres: bool = False
    """The index is in Postgres."""
    restore: Callable[[], None] | None = None
    """What survived is there again. The gateway must have been killed before."""

    @property
    def path(self) -> Path | None:
        """The store's directory, if it has one of its own."""
        return Path(self.store["path"]) if "path" in self.store else None

    def environment(self, home: Path) -> dict[str, str]:
        """Settings of a gateway whose own directory is `home`."""
        stores = {"SLUICE_STORES": json.dumps({"default": self.store})} if self.store else {}
        if self.in_postgres:
            return stores | postgres.environment_here(home)
        return stores and stores | {"SLUICE_INDEX": f"sqlite:///{home}/index/sluice.db"}


@contextmanager
def _here(_: Path) -> Iterator[Place]:
    yield Place()


@contextmanager
def _postgres(directory: Path) -> Iterator[Place]:
    """As several gateways have it: the index in Postgres and the store on NFS, or what passes for it here."""
    yield Place({"driver": "efs", "path": str(directory / "store")}, in_postgres=True)


def tree_at(path: Path) -> Place:
    """A store of plain files on a local disk."""
    return Place({"path": str(path), "layout": "tree"})


@contextmanager
def _tree(directory: Path) -> Iterator[Place]:
    yield tree_at(directory / "tree")


@contextmanager
def _memory(_: Path) -> Iterator[Place]:
    store = {"driver": "fsspec", "url": "memory://place", "durability": "relaxed"}
    yield Place(store, workers=1)


def _disk(kind: str) -> Callable[[Path], AbstractContextManager[Place]]:
    @contextmanager
    def made(directory: Path) -> Iterator[Place]:
        from tests.reliability.crash.power import disk_of  # it imports nothing of ours

        need_root()
        need(f"mkfs.{kind}", "mount", "umount")
        with disk_of(directory, kind) as disk:
            yield Place({"path": str(disk.mount / "store")}, cut=disk.cut, restore=disk.restore)

    return made


@contextmanager
def _tmpfs(directory: Path) -> Iterator[Place]:
    need_root()
    with _mount(directory, "mount", "-t", "tmpfs", "-o", "size=8g", "tmpfs") as where:
        yield Place({"path": str(where / "store")})


def _program(name: str) -> Callable[[Path], AbstractContextManager[Place]]:
    @contextmanager
    def made(directory: Path) -> Iterator[Place]:
        if missing := PROGRAMS[name].missing():
            pytest.skip(missing)
        work = directory / name
        work.mkdir()
        with mounted_by(PROGRAMS[name], work) as mount:
            relaxed = {"durability": "relaxed"} if sync_refusal(mount_of(mount.path)) else {}
            store = {"driver": "fuse", "path": str(mount.path / "store"), **relaxed}
            yield Place(store, cut=mount.kill, restore=mount.restart)

    return made


@contextmanager
def _mount(directory: Path, *command: str) -> Iterator[Path]:
    where = directory / "mount"
    where.mkdir()
    subprocess.run([*command, str(where)], check=True, capture_output=True)
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True, capture_output=True)


def _nfs(version: str) -> Callable[[Path], AbstractContextManager[Place]]:
    @contextmanager
    def made(directory: Path) -> Iterator[Place]:
        from tests.reliability.nfs import power  # it imports nothing of ours

        export = os.environ.get("SLUICE_TEST_NFS")
        if export is None:
            pytest.skip("SLUICE_TEST_NFS names no export (HOST:/PATH)")
        if os.geteuid() != 0:
            pytest.skip("only root can mount")
        need("mount.nfs", "umount")
        with _mount(directory, "mount", "-t", "nfs", "-o", f"vers={version},hard", export) as where:
            own = Path(tempfile.mkdtemp(prefix="sluice-test-", dir=where))
            can_cut = power.LAB.exists()
            try:
                yield Place(
                    {"driver": "efs", "path": str(own / "store")},
                    cut=power.restart if can_cut else None,
                    # until the time of grace is over nothing can be opened, and a start gives up
                    restore=(own / "after").touch if can_cut else None,
                )
            finally:
                shutil.rmtree(own)

    return made


def _passthrough(driver: str, **options: Any) -> Callable[[Path], AbstractContextManager[Place]]:
    @contextmanager
    def made(directory: Path) -> Iterator[Place]:
        need_fuse()
        behind, where = directory / "behind", directory / "mount"
        behind.mkdir()
        where.mkdir()
        with mounted(behind, where, tracked=True, **options) as mount:
            store = {"driver": driver, "path": str(where / "store")}
            yield Place(store, cut=lambda: _lose(mount), restore=mount.restart)

    return made


def driver_for(profile: str) -> str:
    """The driver that one would choose for what a profile stands for."""
    return {"efs": "efs", "ebs": "local"}.get(profile.partition("-")[0], "fuse")


def _lose(mount: Mount) -> None:
    """What was not synced is taken back."""
    mount.cut()


PLACES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "here": _here,
    "postgres": _postgres,
    "tree": _tree,
    "ext4": _disk("ext4"),
    "xfs": _disk("xfs"),
    "btrfs": _disk("btrfs"),
    "tmpfs": _tmpfs,
    "nfs4.2": _nfs("4.2"),
    "nfs3": _nfs("3"),
    "zdbfs": _passthrough("fuse", personality="zdbfs"),
    **{name: _passthrough(driver_for(name), profile=name) for name in PROFILES if name != "none"},
    "memory": _memory,
    **{name: _program(name) for name in PROGRAMS},
}


@contextmanager
def placed(directory: Path, kind: str = CHOSEN) -> Iterator[Place]:
    """A place of this kind, made in `directory`. Skips the test where the machine cannot have it."""
    with ExitStack() as stack:
        yield stack.enter_context(PLACES[kind](directory))
