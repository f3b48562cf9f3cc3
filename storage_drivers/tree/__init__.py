"""The file side of the layout *tree*: one plain file at its key's own path, for people who also read the directory."""

from storage_drivers.tree.base import Collision, FileChanged, FileGone, Found, Seen, Stamp, Unreadable
from storage_drivers.tree.files import TreeFiles
from storage_drivers.tree.watching import Changes

__all__ = [
    "Changes",
    "Collision",
    "FileChanged",
    "FileGone",
    "Found",
    "Seen",
    "Stamp",
    "TreeFiles",
    "Unreadable",
]
