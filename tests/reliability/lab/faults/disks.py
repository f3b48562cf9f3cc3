"""Disks and mounts that are full, broken, slow or away, and power that is cut."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from tests.reliability.crash.power import Disk
from tests.reliability.lab.faults.registry import Scene, fault, keeps_what_is_synced, on_mount, on_sqlite

CALLS = ("create", "write", "fsync", "fsyncdir", "flush")


@fault("power-cut", on=keeps_what_is_synced)
def power_cut(scene: Scene) -> Iterator[None]:
    """The power under store and index is cut: what was not synced is gone. Postgres is on a machine that goes on."""
    yield
    site = scene.site
    scene.ledger.cut()
    with site.standing_still():  # ext4 answers 0 to a sync that is under way, though it is not durable: see README
        for disk in (site.disk, site.index_disk):
            if disk is not None:
                disk.cut()
        if site.mount is not None:
            site.mount.cut(scene.rng.choice((0.0, 0.5)), scene.rng.randrange(1000))
    site.kill()
    for disk in (site.disk, site.index_disk):
        if disk is not None:
            disk.restore()
    if site.mount is not None:
        site.mount.restart()
    scene.ledger.restore()
    site.start()
    yield


@fault("full-data")
def full_data(scene: Scene) -> Iterator[None]:
    """The store's disk is full."""
    yield
    if scene.site.mount is not None:
        number = scene.site.mount.fault("space", "ENOSPC", times=None)
        yield
        scene.site.mount.clear(number)
    elif scene.site.disk is not None:
        scene.site.disk.fill()
        yield
        scene.site.disk.empty()


@fault("full-index", on=on_sqlite)
def full_index(scene: Scene) -> Iterator[None]:
    """The index's disk is full."""
    yield
    assert scene.site.index_disk is not None
    scene.site.index_disk.fill()
    yield
    scene.site.index_disk.empty()


@fault("read-only-data")
def read_only_data(scene: Scene) -> Iterator[None]:
    """The store's file system is read-only, as after an error; an operator mounts it again."""
    yield
    if scene.site.mount is not None:
        number = scene.site.mount.fault("change", "EROFS", times=None)
        yield
        scene.site.mount.clear(number)
    elif scene.site.disk is not None:
        yield from _break_down(scene, scene.site.disk)


@fault("read-only-index", on=on_sqlite)
def read_only_index(scene: Scene) -> Iterator[None]:
    """The same of the index's."""
    yield
    assert scene.site.index_disk is not None
    yield from _break_down(scene, scene.site.index_disk)


def _break_down(scene: Scene, disk: Disk) -> Iterator[None]:
    with scene.site.standing_still():  # as above
        disk.break_down()
    yield
    scene.site.kill()
    disk.restore()
    scene.site.start()


def _failing(name: str, calls: tuple[str, ...]) -> None:
    @fault(name, on=on_mount)
    def eio(scene: Scene) -> Iterator[None]:
        yield
        assert scene.site.mount is not None
        call, nth = scene.rng.choice(calls), scene.rng.randint(1, 5)
        number = scene.site.mount.fault(
            call, "EIO", nth=nth, times=scene.rng.randint(1, 20), after=scene.rng.random() < 0.3
        )
        yield
        scene.site.mount.clear(number)


_failing("eio-write", ("create", "write"))
_failing("eio-sync", ("fsync", "fsyncdir", "flush"))
_failing("eio-read", ("read", "open", "getattr"))


@fault("slow-mount", on=on_mount)
def slow_mount(scene: Scene) -> Iterator[None]:
    """Every call on the mount takes longer."""
    yield
    assert scene.site.mount is not None
    number = scene.site.mount.fault("*", "late", seconds=scene.rng.uniform(0.02, 0.4), times=None)
    yield
    scene.site.mount.clear(number)


@fault("hung-mount", on=on_mount)
def hung_mount(scene: Scene) -> Iterator[None]:
    """The mount answers nothing, for longer than the gateway waits; then everything at once."""
    yield
    assert scene.site.mount is not None
    number = scene.site.mount.fault(scene.rng.choice(("*", *CALLS)), "hang", times=None)
    scene.clients.wait(4.0)
    yield
    scene.site.mount.clear(number)


@fault("mount-gone")
def mount_gone(scene: Scene) -> Iterator[None]:
    """The store's mount goes away and comes back, with other descriptors."""
    yield
    if scene.site.mount is not None:
        scene.site.mount.stop()
        yield
        scene.site.mount.start()
    elif scene.site.disk is not None:
        disk = scene.site.disk
        subprocess.run(["umount", "--lazy", str(disk.mount)], check=True, capture_output=True)
        yield
        disk.give_back()
