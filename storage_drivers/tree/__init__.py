"""The file side of the layout *tree*: plain files at their keys' own paths."""

from sluice_s3.storage_drivers.tree.files import TreeFiles
from sluice_s3.storage_drivers.tree.inotify import Changes
from sluice_s3.storage_drivers.tree.types import (
    Collision,
    FileChanged,
    FileGone,
    ScannedFile,
    SkippedCounts,
    Stamp,
    Unreadable,
)

__all__ = [
    "Changes",
    "Collision",
    "FileChanged",
    "FileGone",
    "ScannedFile",
    "SkippedCounts",
    "Stamp",
    "TreeFiles",
    "Unreadable",
]
