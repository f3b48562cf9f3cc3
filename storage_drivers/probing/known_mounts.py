"""File systems whose fsync(2) succeeds without making anything durable, which no trial can see.

Each was seen to issue no sync (strace(1)); docs/load-testing/file-systems.md has what was seen.
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


def sync_refusal(mount: Mount) -> str:
    """Return why fsync on such a mount is not believed; empty if nothing is known against it. Blocks."""
    if mount.kind == "fuse.rclone":
        return RCLONE
    if mount.kind == "fuse.juicefs" and _writes_back(Path(mount.point) / ".config"):
        return JUICEFS
    return ""


def _writes_back(config: Path) -> bool:
    try:
        with config.open("rb") as file:
            return json.loads(file.read(CONFIG_BYTES))["Chunk"]["Writeback"] is True
    except (OSError, ValueError, LookupError, TypeError):  # it can be hidden
        return False
