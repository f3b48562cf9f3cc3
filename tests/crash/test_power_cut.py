"""Every acknowledged write survives a power cut, on ext4 and XFS."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.ledger import Ledger
from tests.crash.power import Disk
from tests.crash.workload import Clients
from tests.environment import need, need_root, sized
from tests.gateway import Gateway, client

pytestmark = [pytest.mark.power, pytest.mark.crash]

CUTS = sized(ci=2, soak=10)
OPERATIONS = sized(ci=60, soak=400)


@pytest.fixture(params=["ext4", "xfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    need_root()
    need(f"mkfs.{request.param}", "mount", "umount")
    with Disk(tmp_path, request.param) as disk:
        yield disk


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
    with pytest.raises(OSError, match="error"):
        (disk.mount / "after").write_bytes(b"x")
    disk.restore()
    assert (disk.mount / "synced").read_bytes() == b"kept"
    assert list(disk.mount.glob("late-*")) == []
    assert all(path.stat().st_size in (0, 5000) for path in disk.mount.glob("loose-*"))


def test_every_acknowledged_write_survives(disk: Disk) -> None:
    # without grace and in small packs, so that garbage is collected, punched and compacted between and during the cuts
    env = {"SLUICE_DISCARD_GRACE": "0", "SLUICE_PACK_SIZE": str(1 << 20)}
    gateway = Gateway(disk.mount / "data", env=env)
    ledger = Ledger("power")
    survived = 0
    with gateway:
        client(gateway.endpoint).create_bucket(Bucket=ledger.bucket)
        for cut in range(CUTS):
            ledger.acknowledged, ledger.cut = 0, False
            with Clients(ledger, gateway.endpoint, threads=4, seed=cut) as clients:
                clients.wait_for(OPERATIONS)
                ledger.cut = True
                disk.cut()
            assert clients.faults == []
            assert ledger.acknowledged >= OPERATIONS
            gateway.kill()
            disk.restore()
            gateway.start()
            findings = ledger.check(client(gateway.endpoint))
            assert findings.wrong == []
            survived += findings.survived
            report = gateway.run("fsck", "--json", check=False)
            assert report.returncode == 0, report.stdout + report.stderr
    print(f"{CUTS} cuts after {OPERATIONS} acknowledged operations each: {survived} keys and uploads as acknowledged")
