"""Mounts to test on: a FUSE passthrough with the costs of measured file systems, their oddities, and faults."""

from loadtests.mounts.control import Refused
from loadtests.mounts.faults import Fault
from loadtests.mounts.mount import Mount, mounted
from loadtests.mounts.profiles import PROFILES, Profile
from loadtests.mounts.serving import MountFailed, unmount

__all__ = ["PROFILES", "Fault", "Mount", "MountFailed", "Profile", "Refused", "mounted", "unmount"]
