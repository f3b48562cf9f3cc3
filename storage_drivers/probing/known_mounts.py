"""File systems whose fsync(2) succeeds without making anything durable, which no trial can see."""

from __future__ import annotations

from sluice_s3.storage_drivers.mountinfo import Mount

UNSYNCED = {
    "fuse.rclone": "rclone mount uploads a file some seconds after it was closed, and fsync neither waits for that nor "
    "writes its cache to the disk",
}
"""By the kind of mount; each was seen to issue no sync of its own (strace(1)), and is in docs/load-testing."""


def sync_refusal(mount: Mount) -> str:
    """Return why fsync on such a mount is not believed; empty if nothing is known against it."""
    return UNSYNCED.get(mount.kind, "")
