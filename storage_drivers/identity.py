"""Which store a directory is: a UUID and a generation in ROOT/store.json, made once and last of all.

The index keeps the same two. A directory without them while the index knows some is an unmounted path, not an empty
store; a directory with others belongs to another index.
"""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import NamedTuple

from storage_drivers.errors import StoreFailed, map_errors
from storage_drivers.files import write_durably

NAME = "store.json"
LAYOUT = "objects"


class Identity(NamedTuple):
    """Names one state of one store: equal identities belong together."""

    store: str
    """A UUID."""
    generation: int
    """Bumped when a store is restored or rebuilt, so that an older index refuses it."""


def read_identity(root: Path) -> Identity | None:
    """The identity of the store at `root`, None when it has none. Raises StoreFailed for what is not one of ours."""
    with map_errors():
        try:
            content = (root / NAME).read_bytes()
        except FileNotFoundError:
            return None
    if not content.endswith(b"\n"):  # a crash while it was made: nothing can know it yet
        return None
    try:
        fields = json.loads(content)
        identity = Identity(str(uuid.UUID(fields["store"])), int(fields["generation"]))
        layout = fields["layout"]
    except (ValueError, TypeError, KeyError) as error:
        raise StoreFailed(f"{NAME} cannot be read") from error
    if layout != LAYOUT:
        raise StoreFailed(f"the store has the layout {layout!r}, not {LAYOUT!r}")
    return identity


def make_identity(root: Path) -> Identity:
    """Give the store at `root` a new identity that survives a power cut. Raises StoreFailed when it has one.

    For one process only (the launcher, before its workers). A file that a crash left unfinished is replaced: nothing
    can know it, since an index takes an identity only after this returned.
    """
    if read_identity(root) is not None:
        raise StoreFailed("the store has an identity already")
    identity = Identity(str(uuid.uuid4()), 1)
    content = json.dumps({"layout": LAYOUT, **identity._asdict()}).encode() + b"\n"
    with map_errors():
        try:
            os.unlink(root / NAME)
        except FileNotFoundError:
            pass
        write_durably(root / NAME, content)
    return identity
