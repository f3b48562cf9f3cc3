"""The driver of stores in test suites: a local one that fails, or takes its time, when a test says so.

It is for tests of programs that use S3, which then see what a full, slow or read-only disk answers. The fault is set by
`fault_file`. Writes of bodies suffer it; what deletes, and the journals, go on as if they lay on another disk. The
store's files are those of the driver `local`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sluice_s3.storage_drivers.base import AppendRequest
from sluice_s3.storage_drivers.errors import map_errors
from sluice_s3.storage_drivers.fault_file import Fault, read_fault
from sluice_s3.storage_drivers.identity import Identity
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.objects.mount_profile import LOCAL
from sluice_s3.storage_drivers.packs.outcomes import fail
from sluice_s3.storage_drivers.types import no_crash_hook

logger = logging.getLogger("sluice.store")


class FaultyDriver(ObjectsDriver):
    """A store on a local disk whose writes suffer the fault that a test sets."""

    mount_profile = LOCAL

    def __init__(self, root: Path, *, at: Callable[[str], None] = no_crash_hook, **options: Any) -> None:
        self._after_step = at
        super().__init__(root, at=self._step, **options)

    async def start(self) -> None:
        """Start as `ObjectsDriver` does, and warn."""
        await super().start()
        logger.warning("a store has the driver `faulty`: it is for tests only, and fails when a test says so")

    def look(self, known: Identity, *, write: bool) -> None:
        """Check the store; a write suffers the fault like any other."""
        fault = read_fault(self._root) if write else None
        if fault is not None:
            self._suffer(fault)
        super().look(known, write=write)

    def _step(self, name: str) -> None:
        """Suffer within the write of a file: errors when it was created, delays before it is acknowledged."""
        self._after_step(name)
        if name not in ("put.created", "put.closed"):
            return
        fault = read_fault(self._root)
        if fault is not None and bool(fault.code) == (name == "put.created"):
            self._suffer(fault)

    def append(self, entry: AppendRequest) -> None:
        """Queue a small body; while there is a fault, once a thread has suffered it."""
        fault = read_fault(self._root)
        if fault is None:
            super().append(entry)
        else:
            self._run_in_thread(self._suffer, fault).add_done_callback(partial(self._suffered, entry))

    def _suffered(self, entry: AppendRequest, suffering: asyncio.Future[None]) -> None:
        try:
            suffering.result()
            super().append(entry)
        except Exception as error:
            fail([entry], error)

    @staticmethod
    def _suffer(fault: Fault) -> None:
        """Take as long as the fault says, or raise its error as one of the mount."""
        time.sleep(fault.seconds)
        if fault.code:
            with map_errors():
                raise OSError(fault.code, os.strerror(fault.code))
