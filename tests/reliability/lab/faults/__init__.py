"""Every fault by name. Importing a module registers what is in it."""

from __future__ import annotations

from tests.reliability.lab.faults import clocks, database, disks, index_files, processes
from tests.reliability.lab.faults.registry import FAULTS, Fault, Scene

__all__ = ["FAULTS", "Fault", "Scene", "clocks", "database", "disks", "index_files", "processes"]
