"""Test mounts: a FUSE passthrough with costs, oddities and faults of real mounts."""

from sluice_s3.loadtests.mounts.control import Refused
from sluice_s3.loadtests.mounts.faults import Fault
from sluice_s3.loadtests.mounts.fuse_server import MountFailed, unmount
from sluice_s3.loadtests.mounts.mount import Mount, mounted
from sluice_s3.loadtests.mounts.profiles import PROFILES, Profile

__all__ = ["PROFILES", "Fault", "Mount", "MountFailed", "Profile", "Refused", "mounted", "unmount"]
