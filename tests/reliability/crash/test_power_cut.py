"""Every acknowledged write survives a power cut: on ext4, XFS and btrfs, and on mounts that lose what is not synced."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.reliability.crash.ledger import Ledger
from tests.reliability.crash.power import ClonedDisk, Disk, disk_of
from tests.reliability.crash.workload import Clients
from tests.support import postgres
from tests.support.environment import need, need_root, sized
from tests.support.gateway import Gateway, client
from tests.support.places import CHOSEN, Place, placed, tree_at

pytestmark = [pytest.mark.power, pytest.mark.crash]

CUTS = sized(ci=2, soak=10)
OPERATIONS = sized(ci=60, soak=400)


DISKS = ("ext4", "xfs", "btrfs")
MOUNTS = ("efs-004", *sized((), ("efs-000", "efs-001-bursting", "efs-003-elastic")))
"""Only the store lies there: what the index knows is not cut off, and the store must have all of it."""
TREE = "/tree"
"""After the name of a disk or mount: plain files on it."""


def kinds() -> list[str]:
    """Disks and mounts whose power is cut: of the place that SLUICE_TEST_PLACE names, if it names one."""
    if "SLUICE_TEST_PLACE" not in os.environ:
        trees = sized(("ext4", "efs-004"), (*DISKS, *MOUNTS))
        return [*DISKS, *MOUNTS, *(name + TREE for name in trees)]
    return [name + TREE for name in DISKS] if CHOSEN == "tree" else [CHOSEN]


class Powered(NamedTuple):
    """A gateway that was not started, and how the power under it is cut and comes back."""

    gateway: Gateway
    cut: Callable[[], None]
    restore: Callable[[], None]


@pytest.fixture(params=DISKS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    need_root()
    need(f"mkfs.{request.param}", "mount", "umount")
    with disk_of(tmp_path, request.param) as disk:
        yield disk


@pytest.fixture(params=kinds())
def powered(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Powered]:
    # without grace and in small packs, so that garbage is collected, punched and compacted between and during the cuts
    env = {"SLUICE_DISCARD_GRACE": "0", "SLUICE_PACK_SIZE": str(1 << 20)}
    name = request.param.removesuffix(TREE)
    tree = name != request.param
    if name == "btrfs" and postgres.CHOSEN == "postgres":
        pytest.skip("its image is copied while the gateway goes on: Postgres would know of what came after")
    if name in DISKS:
        need_root()
        need(f"mkfs.{name}", "mount", "umount")
        with disk_of(tmp_path, name) as disk:
            place = tree_at(disk.mount / "tree") if tree else Place()
            yield Powered(Gateway(disk.mount / "data", env=env, place=place), disk.cut, disk.restore)
        return
    with placed(tmp_path, name) as place:
        if place.cut is None or place.restore is None:
            pytest.skip("no way to cut the power under it")
        if tree:
            place.store["layout"] = "tree"
        yield Powered(Gateway(tmp_path / "data", env=env, place=place), place.cut, place.restore)


def test_the_harness_cuts(disk: Disk) -> None:
    """Only what was synced, with its directory, is there after a cut: else the tests below would prove nothing."""
    for number in range(20):
        (disk.mount / f"loose-{number}").write_bytes(b"x" * 5000)
    fd = os.open(disk.mount / "synced", os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"kept")
    os.fsync(fd)
    os.close(fd)
    directory = os.open(disk.mount, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
    for number in range(20):
        (disk.mount / f"late-{number}").write_bytes(b"x" * 5000)
    disk.cut()
    if not isinstance(disk, ClonedDisk):
        with pytest.raises(OSError, match="error"):
            (disk.mount / "after").write_bytes(b"x")
    disk.restore()
    assert (disk.mount / "synced").read_bytes() == b"kept"
    assert list(disk.mount.glob("late-*")) == []
    assert all(path.stat().st_size in (0, 5000) for path in disk.mount.glob("loose-*"))


def test_every_acknowledged_write_survives(powered: Powered) -> None:
    gateway = powered.gateway
    ledger = Ledger("power")
    survived = 0
    with gateway:
        client(gateway.endpoint).create_bucket(Bucket=ledger.bucket)
        for cut in range(CUTS):
            ledger.acknowledged, ledger.cut = 0, False
            with Clients(ledger, gateway.endpoint, threads=4, seed=cut) as clients:
                clients.wait_for(OPERATIONS)
                ledger.cut = True
                powered.cut()
            assert clients.faults == []
            assert ledger.acknowledged >= OPERATIONS
            gateway.kill()
            powered.restore()
            gateway.start()
            findings = ledger.check(client(gateway.endpoint))
            assert findings.wrong == []
            survived += findings.survived
            report = gateway.run("fsck", "--json", check=False)
            assert report.returncode == 0, report.stdout + report.stderr
    print(f"{CUTS} cuts after {OPERATIONS} acknowledged operations each: {survived} keys and uploads as acknowledged")
