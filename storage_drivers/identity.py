"""The identity of a store: UUID and generation in ROOT/store.json, created last of all.

The index stores the same two. A directory without them while the index has some is an unmounted path, not an empty
store; a directory with others belongs to another index.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from pathlib import Path
from typing import NamedTuple

from sluice_s3.storage_drivers.errors import StoreFailed, map_errors
from sluice_s3.storage_drivers.fsutil import write_durably

NAME = "store.json"
TEMPORARY_NAME = "store.json.new"
"""Name of the next identity while it replaces the last one."""
LAYOUT = "objects"
RESTORING = "restoring "
"""In place of the layout while a restore fills the store, before the name of its source: nothing else may use it, or
make a new store there."""


class Identity(NamedTuple):
    """The name of one state of one store: equal identities belong together."""

    store: str
    """A UUID."""
    generation: int
    """Raised when a store is restored or rebuilt, so that an older index refuses it."""


def read_identity(root: Path) -> Identity | None:
    """Return the identity of the store at `root`; None when it has none.

    Raises StoreFailed for an identity that is not one of ours.
    """
    for name in (NAME, TEMPORARY_NAME):
        with map_errors():
            try:
                content = (root / name).read_bytes()
            except FileNotFoundError:
                continue
        if content.endswith(b"\n"):  # else a crash interrupted its creation: nothing can know it yet
            return parse_identity(content)
    return None


def parse_identity(content: bytes) -> Identity:
    """Parse the file of an identity. Raises StoreFailed."""
    try:
        fields = json.loads(content)
        identity = Identity(str(uuid.UUID(fields["store"])), int(fields["generation"]))
        layout = fields["layout"]
    except (ValueError, TypeError, KeyError) as error:
        raise StoreFailed(f"{NAME} cannot be read") from error
    if str(layout).startswith(RESTORING):
        raise StoreFailed("the store is being restored, or a restore of it did not end: run it again")
    if layout != LAYOUT:
        raise StoreFailed(f"the store has the layout {layout!r}, not {LAYOUT!r}")
    return identity


def raise_generation(root: Path) -> Identity:
    """Give the store the next generation, so that every older index refuses it.

    It survives a power cut. For one process only. A new file is whole before the old one is removed, since the mount
    may not rename over.
    """
    found = read_identity(root)
    if found is None:
        raise StoreFailed("there is no store here")
    raised = Identity(found.store, found.generation + 1)
    replace_identity(root, raised)
    return raised


def replace_identity(root: Path, identity: Identity, layout: str = LAYOUT) -> None:
    """Replace the identity of the store at `root`, or its mark.

    With the layout `RESTORING` and a name it marks a directory that a restore fills with the data of that identity.
    """
    with map_errors():
        for name in (TEMPORARY_NAME, NAME):
            try:
                os.unlink(root / name)
            except FileNotFoundError:
                pass
            write_durably(root / name, serialize(identity, layout))
        os.unlink(root / TEMPORARY_NAME)


def find_restored(root: Path) -> tuple[Identity, str] | None:
    """Return the identity that a restore, which has not ended, gives the store at `root`, and the name of its source.

    Returns None for any other directory.
    """
    for name in (NAME, TEMPORARY_NAME):
        with map_errors():
            try:
                fields = json.loads((root / name).read_bytes())
                if fields["layout"].startswith(RESTORING):
                    source = fields["layout"].removeprefix(RESTORING)
                    return Identity(str(fields["store"]), int(fields["generation"])), source
            except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError):
                continue
    return None


def lock_store(root: Path, *, alone: bool) -> int | None:
    """Lock a store as in use; None where the mount has no locks.

    The lock holds while the descriptor returned is open. Raises StoreFailed when the store must be used alone and is
    not.
    """
    with map_errors():
        name = NAME if (root / NAME).exists() else TEMPORARY_NAME
        # NFSv4 locks alone only what is open for writing, and EBADF would pass for a mount without locks: flock(2)
        fd = os.open(root / name, (os.O_RDWR if alone else os.O_RDONLY) | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise StoreFailed("the store is in use" if alone else "the store is being rebuilt") from None
    except OSError:
        os.close(fd)
        return None
    return fd


def serialize(identity: Identity, layout: str = LAYOUT) -> bytes:
    """Return the file content of an identity."""
    return json.dumps({"layout": layout, **identity._asdict()}).encode() + b"\n"


def make_identity(root: Path) -> Identity:
    """Give the store at `root` a new identity that survives a power cut.

    For one process only (the launcher, before its workers). A file that a crash left unfinished is replaced: nothing
    can know it, since an index adopts an identity only after this returned. Raises StoreFailed when it has one.
    """
    if read_identity(root) is not None:
        raise StoreFailed("the store has an identity already")
    identity = Identity(str(uuid.uuid4()), 1)
    with map_errors():
        try:
            os.unlink(root / NAME)
        except FileNotFoundError:
            pass
        write_durably(root / NAME, serialize(identity))
    return identity
