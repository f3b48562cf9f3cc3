"""NFS mounts in the client of the lab, and gateways on them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.gateway import Gateway
from tests.support.places import Place

CACHES = Path("/proc/sys/vm/drop_caches")
HASTY = {"SLUICE_DISCARD_GRACE": "0", "SLUICE_PACK_SIZE": str(1 << 20), "SLUICE_HANG_TIMEOUT": "60"}
"""Packs are full soon, and what died is removed and compacted during the run; a busy machine is no outage."""


APART = {
    "4": ("vers=4.2,hard", "vers=4.1,hard"),
    "3": ("vers=3,hard,nosharecache", "vers=3,hard,nosharecache"),
}
"""Options of two mounts that share neither caches nor, on NFS 4, the identity by which the server knows a machine."""


@contextmanager
def mounted(directory: Path, export: str = "/sync", options: str = "vers=4.2,hard") -> Iterator[Path]:
    """Mount an export of the server while the block runs."""
    directory.mkdir(parents=True)
    subprocess.run(["mount", "-t", "nfs", "-o", options, f"server:{export}", str(directory)], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def gateway_on(mount: Path, home: Path, **env: str) -> Gateway:
    """A gateway, to be started, with its store on the mount and its index on this machine."""
    place = Place({"driver": "efs", "path": str(mount / home.name)})
    return Gateway(home / "data", env={**HASTY, **env}, place=place)


def wait_for_server(mount: Path) -> None:
    """Wait until the server opens files again: not before its time of grace is over."""
    (mount / "open").touch()


def forget() -> None:
    """Empty the page cache, so that what is read comes from the server."""
    subprocess.run(["sync"], check=True)
    CACHES.write_text("3")
