"""The choices in which the drivers of the layout *objects* differ; everything else they share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is asked of a mount. Each driver has one, and its probe may take away more."""

    now: bool
    """Reads on the event loop, where the page cache answers."""
    descriptors: bool
    """Files of blobs go to sockets by their descriptors. False: blobs are read in threads, and no descriptor outlives
    the call that opened it."""
    parts: int
    """Files to which one large body may be written at once; 1: it is one file."""
    read_ahead: int
    """Pieces of a blob that are read at once for one reader."""
    patience: float
    """Seconds for which a committed blob that is not there, or whose handle is stale, is looked for again."""
    streams: int
    """Packs to which one worker writes at once, when there is enough to write."""
    window: int
    """Bytes of a pack that are kept or dropped as one, where what is read of packs is kept in memory; 0: nothing is."""
    pack_ahead: int
    """Bytes by which packs are made longer before records come there; 0: each write moves their end."""
    check_size: bool
    """What stat(2) says of a file is compared with what was written to it."""


LOCAL = Recipe(
    now=True,
    descriptors=True,
    parts=1,
    read_ahead=1,
    patience=0.0,
    streams=1,
    window=0,
    pack_ahead=0,
    check_size=False,
)

EFS = Recipe(
    now=False,
    descriptors=False,
    # one stream into a file is slow until it is tens of MB long; eight reach what the file system gives
    parts=8,
    read_ahead=8,
    # negative entries and attributes are cached by clients for some seconds, and what one client deletes is stale for
    # the others: nfs(5), acregmin
    patience=3.0,
    # each sync is a round trip and then some for every byte, whatever others send meanwhile
    streams=8,
    # what Linux asks for at a time on NFS and FUSE (read_ahead_kb)
    window=128 << 10,
    pack_ahead=8 << 20,
    check_size=False,
)

FUSE = Recipe(
    now=False,
    descriptors=False,
    parts=1,
    read_ahead=4,
    patience=1.0,
    streams=4,
    window=128 << 10,
    pack_ahead=0,
    check_size=True,
)
