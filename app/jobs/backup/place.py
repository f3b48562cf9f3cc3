"""Where backups are kept: what a directory and a bucket have in common.

    snapshots/TIME/        one backup: manifest.db, index.db, keys/
    data/UUID.N/XX/NAME    files that backups share, written once: UUID and generation N of their store

A shared file has its whole content, or it is not there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.tools.backup import ExportedIndex
from sluice_s3.app.index.tools.manifest import Manifest, Part
from sluice_s3.app.jobs.backup.copying import Copied

SNAPSHOTS, DATA, LOCK = "snapshots", "data", "backup.lock"
MANIFEST, INDEX, KEYS = "manifest.db", "index.db", "keys"
PARTIAL = ".partial"
TIME = "%Y%m%dT%H%M%SZ"


class BackupPlace(ABC):
    """A place for the backups of one gateway. Every method blocks, and raises DomainError or OSError."""

    name: str
    """As the operator names it."""
    threads: int
    """How many shared files are copied or read at once."""

    # the whole of it
    @abstractmethod
    def make(self, stores: Iterable[Path]) -> None:
        """Make it ready for a backup. Raises StoreUnavailable where something else is, or one of the stores."""

    @abstractmethod
    def require_apart(self, index: ExportedIndex) -> None:
        """Raise StoreUnavailable when the gateway of this index keeps the place itself."""

    @abstractmethod
    def locked(self, *, alone: bool) -> AbstractContextManager[None]:
        """Lock it, against another backup (`alone`) or against its removal of old ones. Raises Overloaded."""

    @abstractmethod
    def close(self) -> None:
        """Forget what was fetched."""

    # backups
    @abstractmethod
    def snapshots(self) -> list[str]:
        """Return the names of all whole backups, oldest first."""

    @abstractmethod
    def fetch(self, name: str) -> Path:
        """Return a directory of that name, with manifest, index and keys of this backup."""

    @abstractmethod
    def begin(self) -> Path:
        """Return an empty directory for manifest, index and keys of a new backup."""

    @abstractmethod
    def commit(self, partial: Path) -> str:
        """Make a backup whole, and durable; return its name."""

    @abstractmethod
    def newest(self) -> AbstractContextManager[Manifest | None]:
        """Open the manifest of the newest backup, if there is one that is whole."""

    @abstractmethod
    def prune(self, keep: int) -> tuple[int, int, int]:
        """Remove all but the newest `keep` backups, and the files that only they need.

        Returns the number of backups and of files removed, and the bytes of these files.
        """

    def find(self, name: str | None) -> Path:
        """Fetch the backup of that name, else the newest. Raises StoreUnavailable."""
        names = self.snapshots()
        if not names:
            raise StoreUnavailable(reason=f"there is no backup in {self.name}")
        if name is not None and name not in names:
            raise StoreUnavailable(reason=f"there is no backup {name} in {self.name}")
        return self.fetch(name or names[-1])

    def next_name(self) -> str:
        """Return the name of a new backup: the time, and later than all that are there."""
        names = set(self.snapshots())
        name = now = datetime.now(UTC).strftime(TIME)
        number = 1
        while name in names or (names and name < max(names)):  # two in one second, or a clock that was set back
            number += 1
            name = f"{max(now, max(names).partition('-')[0])}-{number:03}"
        return name

    # shared files
    @abstractmethod
    def has(self, part: Part) -> bool:
        """Return whether the shared file of a part is there, with its size."""

    @abstractmethod
    def put(self, name: str, source: int, start: int, size: int) -> tuple[str, bool]:
        """Write a run of an open file into a shared file, unless it is there.

        Returns its XXH3-128, and whether it was written. Raises SourceFailed when the run cannot be read.
        """

    @abstractmethod
    def settle(self) -> None:
        """Make all shared files durable that were written."""

    @abstractmethod
    def read(self, name: str, size: int | None, target: int | None) -> Copied:
        """Read `size` bytes of a shared file, or all of it; append them to an open file, if given.

        Raises SourceFailed when it is missing, too short, or cannot be read; OSError of the target.
        """
