"""The memory in which all processes of a server cache small objects of slow mounts (`read_cache`).

It is no file of the runtime directory, whose disk would have to keep up with it. It grows as it is filled: one that no
read fills costs nothing.
"""

from __future__ import annotations

import os

from sluice_s3.app.settings import Settings
from sluice_s3.app.store.stores import caches_reads
from sluice_s3.storage_drivers.packs.record_cache import LEAST_BYTES


class ReadCaches:
    """A memory for each store whose driver caches reads. Raises OSError.

    `fds` are their descriptors by the names of stores, for children to inherit.
    """

    def __init__(self, settings: Settings) -> None:
        self.fds: dict[str, int] = {}
        try:
            for name, store in settings.named_stores.items():
                if caches_reads(store):
                    self.fds[name] = _create(name, max(store.read_cache or 0, LEAST_BYTES))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the descriptors. The memory lives as long as a process has mapped it."""
        while self.fds:
            os.close(self.fds.popitem()[1])


def _create(name: str, size: int) -> int:
    fd = os.memfd_create(f"read-cache-{name}"[:200], os.MFD_CLOEXEC)
    os.ftruncate(fd, size)
    return fd
