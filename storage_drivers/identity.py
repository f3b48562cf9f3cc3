"""Which store a directory is: a UUID and a generation in ROOT/store.json, made once and last of all.

The index keeps the same two. A directory without them while the index knows some is an unmounted path, not an empty
store; a directory with others belongs to another index.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from pathlib import Path
from typing import NamedTuple

from storage_drivers.errors import StoreFailed, map_errors
from storage_drivers.files import write_durably

NAME = "store.json"
NEW = "store.json.new"
"""The next identity, while the file of the last one is being replaced."""
LAYOUT = "objects"


class Identity(NamedTuple):
    """Names one state of one store: equal identities belong together."""

    store: str
    """A UUID."""
    generation: int
    """Bumped when a store is restored or rebuilt, so that an older index refuses it."""


def read_identity(root: Path) -> Identity | None:
    """The identity of the store at `root`, None when it has none. Raises StoreFailed for what is not one of ours."""
    for name in (NAME, NEW):
        with map_errors():
            try:
                content = (root / name).read_bytes()
            except FileNotFoundError:
                continue
        if content.endswith(b"\n"):  # else a crash while it was made: nothing can know it yet
            return parsed(content)
    return None


def parsed(content: bytes) -> Identity:
    """The identity that a file of one says. Raises StoreFailed."""
    try:
        fields = json.loads(content)
        identity = Identity(str(uuid.UUID(fields["store"])), int(fields["generation"]))
        layout = fields["layout"]
    except (ValueError, TypeError, KeyError) as error:
        raise StoreFailed(f"{NAME} cannot be read") from error
    if layout != LAYOUT:
        raise StoreFailed(f"the store has the layout {layout!r}, not {LAYOUT!r}")
    return identity


def raise_generation(root: Path) -> Identity:
    """Give the store the next generation, so that every index of an older one refuses it; survives a power cut.

    For one process only. A new file is whole before the old one goes, since the mount may not rename over.
    """
    found = read_identity(root)
    if found is None:
        raise StoreFailed("there is no store here")
    raised = Identity(found.store, found.generation + 1)
    with map_errors():
        for name in (NEW, NAME):
            try:
                os.unlink(root / name)
            except FileNotFoundError:
                pass
            write_durably(root / name, content_of(raised))
        os.unlink(root / NEW)
    return raised


def hold(root: Path, *, alone: bool) -> int | None:
    """A descriptor that says as long as it is open that the store is in use; None where the mount cannot tell.

    Raises StoreFailed when it is to be used alone and is not.
    """
    with map_errors():
        name = NAME if (root / NAME).exists() else NEW
        fd = os.open(root / name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise StoreFailed("the store is in use" if alone else "the store is being rebuilt") from None
    except OSError:
        os.close(fd)
        return None
    return fd


def content_of(identity: Identity) -> bytes:
    """The file of an identity."""
    return json.dumps({"layout": LAYOUT, **identity._asdict()}).encode() + b"\n"


def make_identity(root: Path) -> Identity:
    """Give the store at `root` a new identity that survives a power cut. Raises StoreFailed when it has one.

    For one process only (the launcher, before its workers). A file that a crash left unfinished is replaced: nothing
    can know it, since an index takes an identity only after this returned.
    """
    if read_identity(root) is not None:
        raise StoreFailed("the store has an identity already")
    identity = Identity(str(uuid.uuid4()), 1)
    with map_errors():
        try:
            os.unlink(root / NAME)
        except FileNotFoundError:
            pass
        write_durably(root / NAME, content_of(identity))
    return identity
