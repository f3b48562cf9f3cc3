"""What is known of mounts that no trial can see: fsync(2) that makes nothing durable, options, an unfit driver.

Each file system that is refused was seen to issue no sync (strace(1)); docs/load-testing/file-systems.md has what was
seen.
"""

from __future__ import annotations

import json
from pathlib import Path

from sluice_s3.storage_drivers.mountinfo import Mount

CONFIG_BYTES = 1 << 20
"""More is no configuration of JuiceFS, which shows its own in a file."""
RCLONE = (
    "rclone mount uploads a file some seconds after it was closed, and fsync neither waits for that nor writes its "
    "cache to the disk"
)
JUICEFS = "JuiceFS with --writeback uploads later, and fsync does not write its staging directory to the disk"
_EITHER = {
    "soft": "a server that does not answer for a while makes reads and writes fail (503); mount with hard",
    "softerr": "a server that does not answer for a while makes reads and writes fail (503); mount with hard",
    "nocto": "what another gateway or program wrote may be seen late, or not at all; several gateways need cto",
    "nosharecache": "what another mount of the export on this machine wrote may stay unseen; share one mount",
}
"""By the option's name, as the kernel's table of mounts has it (nfs(5))."""
_LOCKS = {
    "nolock": "locks of other machines are not seen, so that rebuild does not keep their gateways out; mount with lock",
    "local_lock=all": "locks of other machines are not seen, so that rebuild does not keep their gateways out",
    "local_lock=flock": "locks of other machines are not seen, so that rebuild does not keep their gateways out",
}


def sync_refusal(mount: Mount) -> str:
    """Return why fsync on such a mount is not believed; empty if nothing is known against it. Blocks."""
    if mount.kind == "fuse.rclone":
        return RCLONE
    if mount.kind == "fuse.juicefs" and _writes_back(Path(mount.point) / ".config"):
        return JUICEFS
    return ""


def warnings(mount: Mount) -> list[str]:
    """Return what is wrong with a mount's options, each as "option: consequence".

    Only NFS has such options. What the server does (an export that is `async`) is not among them.
    """
    if not mount.kind.startswith("nfs"):
        return []
    options = mount.settings.split(",")
    found = [f"{name}: {why}" for name, why in _EITHER.items() if name in options]
    return found + [f"{name}: {why}" for name, why in _LOCKS.items() if name in options][:1]


def misfit(mount: Mount, *, patient: bool) -> str:
    """Return what a driver that is not `patient` with stale caches does wrong on this mount; empty if nothing."""
    if patient or mount.driver == "local" or mount.kind == "unknown":
        return ""
    return f"driver local on {mount.kind}: what the mount shows late counts as damage; set the driver {mount.driver}"


def _writes_back(config: Path) -> bool:
    try:
        with config.open("rb") as file:
            return json.loads(file.read(CONFIG_BYTES))["Chunk"]["Writeback"] is True
    except (OSError, ValueError, LookupError, TypeError):  # it can be hidden
        return False
