"""Mount profiles: all differences between the drivers of the layout *objects*."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MountProfile:
    """The features of a mount that its driver uses.

    Each driver has one; the probe may disable parts of it.
    """

    now: bool
    """Whether reads happen on the event loop when the page cache has the bytes, and small writes without a sync."""
    descriptors: bool
    """Files of blobs go to sockets by their descriptors. False: blobs are read in threads, and no descriptor outlives
    the call that opened it."""
    parts: int
    """Files to which one large body may be written at once; 1 means one file."""
    read_ahead: int
    """Pieces of a blob that are read concurrently for one reader."""
    retry_seconds: float
    """Seconds for which a missing committed blob, or one with a stale handle, is tried again."""
    streams: int
    """Packs to which one worker writes at once, under enough load."""
    window: int
    """Bytes of a pack that are cached or evicted as one; 0 disables the cache of packs."""
    pack_ahead: int
    """Bytes by which packs are extended before records are written there; 0: each write moves their end."""
    check_size: bool
    """Whether the size from stat(2) is compared with the bytes written."""


LOCAL = MountProfile(
    now=True,
    descriptors=True,
    parts=1,
    read_ahead=1,
    retry_seconds=0.0,
    streams=1,
    window=0,
    pack_ahead=0,
    check_size=False,
)

EFS = MountProfile(
    now=False,
    descriptors=False,
    # One stream into a file is slow until it is tens of MB long; eight reach the limit of the filesystem.
    parts=8,
    read_ahead=8,
    # Clients cache negative entries and attributes for some seconds, and what one client deletes is stale for the
    # others: nfs(5), acregmin.
    retry_seconds=3.0,
    # Each sync costs a round trip and time for every byte, whatever others send meanwhile.
    streams=8,
    # Linux reads that much at a time on NFS and FUSE (read_ahead_kb).
    window=128 << 10,
    pack_ahead=8 << 20,
    check_size=False,
)

FUSE = MountProfile(
    now=False,
    descriptors=False,
    parts=1,
    read_ahead=4,
    retry_seconds=1.0,
    streams=4,
    window=128 << 10,
    pack_ahead=0,
    check_size=True,
)
